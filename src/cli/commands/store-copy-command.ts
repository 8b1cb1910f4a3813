import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { assertBinding } from '../../accounts/store-binding.ts';
import { EMBEDDED_FILES, openEmbeddedEvents, openEngines } from '../../app.ts';
import { FuelError } from '../../errors.ts';
import type { CopyReport } from '../../store-copy/copy-store.ts';
import { addCommand, type Output, type Session } from '../command/command.ts';
import { nameOption } from '../command/options.ts';
import { progressLine } from '../command/progress.ts';

export function addStoreCopyCommand(store: Command): void {
  addCommand(store, {
    usage: 'copy',
    summary:
      'copy the embedded events into EventStoreDB (EVENTSTORE_URL) and the delivery log into MongoDB ' +
      '(MONGODB_URL), while nothing runs on either; run it again to continue after an interruption',
    example: 'EVENTSTORE_URL=esdb://node:2113 MONGODB_URL=mongodb://node/?replicaSet=rs0 fuel store copy',
    options: (command) =>
      command.option('--actor <name>', 'who does this (default: the login name)', nameOption),
    judgesStore: true,
    work: copy,
  });
}

async function copy({ config, engines, clock, author, out }: Session): Promise<number> {
  if (config.EVENTSTORE_URL === undefined || config.MONGODB_URL === undefined) {
    throw new FuelError(
      'REFUSED',
      'set both EVENTSTORE_URL and MONGODB_URL: the events and the delivery log are copied together',
    );
  }
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
    const target = {
      store: engines.store(),
      deliveries: engines.deliveryLog(),
      coordination: engines.coordination(),
    };
    for (const { store } of [source, target]) await assertBinding(store, config);
    // Loaded here: no other command copies anything.
    const { copyStore, parkedByGroup } = await import('../../store-copy/copy-store.ts');
    const report = await copyStore({
      source,
      target,
      author,
      clock,
      onProgress: ({ step, done }) => progress.show(`${step}: ${done}`),
    });
    progress.end();
    print(report, out);
    for (const { group, parked } of await parkedByGroup(embedded.subscriptions())) {
      out.note(`${parked} events are parked in the group ${group} here: it receives them again there`);
    }
    return report.faults.length === 0 ? 0 : 1;
  } finally {
    progress.end();
    await events.close();
    await embedded.close();
  }
}

function print({ events, deliveries, copiedBefore, faults }: CopyReport, out: Output): void {
  for (const fault of faults) out.note(fault);
  if (copiedBefore) out.note('it was copied before: this time it was only compared');
  const verified = faults.length === 0;
  const counts = `${events} events, ${deliveries ?? 0} deliveries`;
  out.result(
    { events, deliveries, verified },
    verified ? `${counts}: copied, read back and found equal` : `${counts} are equal, the rest is not`,
  );
}
