import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { assertBinding } from '../../accounts/store-binding.ts';
import { EMBEDDED_FILES, openEmbeddedEvents, openEngines } from '../../app.ts';
import type { Config } from '../../config/config.ts';
import { FuelError } from '../../errors.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import type { CopyReport } from '../../store-copy/copy-store.ts';
import { addCommand, type Output, type Session } from '../command/command.ts';
import { nameOption } from '../command/options.ts';
import { progressLine } from '../command/progress.ts';

export function addStoreCopyCommand(store: Command): void {
  addCommand(store, {
    usage: 'copy',
    summary:
      'copy the embedded events into EventStoreDB (EVENTSTORE_URL) and the delivery log into MongoDB ' +
      '(MONGODB_URL), while nothing runs on either; run it again to go on after an interruption',
    example: 'EVENTSTORE_URL=esdb://node:2113 MONGODB_URL=mongodb://node/?replicaSet=rs0 fuel store copy',
    options: (command) =>
      command.option('--actor <name>', 'who does this (default: the login name)', nameOption),
    judgesStore: true,
    work: copy,
  });
}

async function copy({ config, engines, clock, author, out }: Session): Promise<number> {
  if (!existsSync(join(config.FUEL_DATA_DIR, EMBEDDED_FILES.events))) {
    throw new FuelError(
      'REFUSED',
      `${config.FUEL_DATA_DIR} has no embedded store: set FUEL_DATA_DIR to the folder that is copied`,
    );
  }
  const embedded = await openEngines({ ...config, EVENTSTORE_URL: undefined, MONGODB_URL: undefined }, clock);
  const events = openEmbeddedEvents(config, clock);
  const progress = progressLine();
  try {
    const source = {
      store: events,
      erasedStreams: () => events.erasedStreams(),
      deliveries: embedded.deliveryLog(),
      coordination: embedded.coordination(),
    };
    const { deliveries, coordination } =
      config.MONGODB_URL === undefined
        ? source
        : { deliveries: engines.deliveryLog(), coordination: engines.coordination() };
    const store = config.EVENTSTORE_URL === undefined ? events : engines.store();
    for (const either of new Set([events, store])) await assertBinding(either, config);
    // Loaded here: no other command copies anything.
    const [{ copyStore }, { parkedByGroup }] = await Promise.all([
      import('../../store-copy/copy-store.ts'),
      import('../../store-copy/parked-by-group.ts'),
    ]);
    const report = await copyStore({
      source,
      target: { store, deliveries, coordination },
      author,
      clock,
      onProgress: ({ step, done }) => progress.show(`${step}: ${done}`),
    });
    progress.end();
    tell(report, config, out);
    if (store !== events) {
      if (config.MONGODB_URL === undefined && !report.copiedBefore && report.faults.length === 0) {
        // Its checkpoint counts in the embedded log's positions, which mean nothing in the other one.
        await embedded.view().begin(await storeIdentity(store, clock), await store.head());
      }
      for (const { group, parked } of await parkedByGroup(embedded.subscriptions())) {
        out.note(`${parked} events are parked in the group ${group} here: it is handed them again there`);
      }
    }
    return report.faults.length === 0 ? 0 : 1;
  } finally {
    progress.end();
    await events.close();
    await embedded.close();
  }
}

function tell(report: CopyReport, config: Config, out: Output): void {
  const { events, deliveries, copiedBefore, faults } = report;
  for (const fault of faults) out.note(fault);
  if (copiedBefore) out.note('it was copied before: this time it was only compared');
  if (config.EVENTSTORE_URL === undefined) {
    out.note('EVENTSTORE_URL is not set: the events stay where they are');
  }
  if (config.MONGODB_URL === undefined) {
    out.note(
      'MONGODB_URL is not set: the delivery log stays where it is and goes with the copied events from now on; the view ' +
        'is built from them when the service starts',
    );
  }
  const verified = faults.length === 0;
  const counts = `${events ?? 0} events, ${deliveries ?? 0} deliveries`;
  out.result(
    { events, deliveries, verified },
    verified ? `${counts}: copied, read back and found equal` : `${counts} are equal, the rest is not`,
  );
}
