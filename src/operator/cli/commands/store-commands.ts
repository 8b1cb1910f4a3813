import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { FuelError } from '../../../base/errors.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { openEngines, servers, settingsFor } from '../../../engines/engines.ts';
import { EMBEDDED_FILES } from '../../../engines/sqlite/embedded-files.ts';
import { openEmbeddedEvents } from '../../../engines/sqlite/engine.ts';
import { recordOperations } from '../../../event-store/operations.ts';
import { textOfRef } from '../../../event-store/recorded-event.ts';
import { groupStatus } from '../../../event-store/skipped-events.ts';
import { storeIdentity } from '../../../event-store/store-identity.ts';
import { DELIVERIES_GROUP } from '../../../push/fan-out/run-fan-out.ts';
import { openSigner } from '../../../seals/seal-key.ts';
import type { LogFault } from '../../../seals/verify-log.ts';
import type { Engines, PortName } from '../../../service/engines/engines.ts';
import { assertNotMoved, markMoved, unmark } from '../../../service/stores/moved-store.ts';
import { assertBinding, trustMasterKey } from '../../../service/stores/store-binding.ts';
import { backupDataDir } from '../../backup/backup.ts';
import type { CopyEnd } from '../../copy/copy-store.ts';
import { command, noun } from '../command/command.ts';
import { hasStore, requireStore } from '../command/known-store.ts';
import { ACTOR_OPTION, REASON, readText } from '../command/options.ts';
import { faultText } from './audit/audit-verify-command.ts';

const backup = command({
  name: 'backup',
  summary:
    'copy the embedded files while the service runs, and check the copies; the folder can be used as FUEL_DATA_DIR',
  example: 'fuel store backup /backups/2026-09-03',
  syntax: (it) => it.argument('<dir>', 'a new folder').option(...ACTOR_OPTION),
  ownStoreCheck: true,
  async work({ config, engines, clock, author, out }, [dir]) {
    if (engines.remote.length > 0) {
      out.note(
        'Only the embedded files are copied. Back up the servers with their own tools: docs/operations/backup.md',
      );
    }
    const manifest = await backupDataDir(config.FUEL_DATA_DIR, dir, formatDateTime(clock.now()));
    if (engines.embedded.includes('store')) {
      const made = { type: 'BackupMade', data: { events_up_to: manifest.events_up_to } } as const;
      await recordOperations(engines.store(), [made], { author, clock });
    }
    out.answer({ dir, ...manifest });
  },
});

const copy = command({
  name: 'copy',
  summary:
    `copy the embedded events into ${targetsFor('events')} and the delivery log into ${targetsFor('tables')}, while ` +
    'nothing runs on either; run it again to continue after an interruption',
  example: 'fuel store copy',
  syntax: (it) => it.option(...ACTOR_OPTION),
  ownStoreCheck: true,
  async work({ config, engines, clock, author, out }) {
    const { embedded: left } = engines;
    if (left.includes('store') || left.includes('queue') || left.includes('coordination')) {
      throw new FuelError(
        'REFUSED',
        `The events and the delivery log are copied together. Set ${settingsFor('store')}, and ${settingsFor('queue')}`,
      );
    }
    if (!existsSync(join(config.FUEL_DATA_DIR, EMBEDDED_FILES.events))) {
      throw new FuelError(
        'REFUSED',
        `There is no embedded store in ${config.FUEL_DATA_DIR}. Set FUEL_DATA_DIR to the folder to copy`,
      );
    }
    const embedded = await openEngines({ ...config, ofEngines: {} }, clock);
    const store = openEmbeddedEvents(config, clock);
    try {
      const [source, target] = [
        { ...endOf(embedded), store, erasedStreams: () => store.erasedStreams() },
        endOf(engines),
      ];
      for (const end of [source, target]) await assertBinding(end.store, config);
      const to = engines.remote.map(({ address }) => address);
      // Loaded here, since no other command needs it.
      const { copyStore } = await import('../../copy/copy-store.ts');
      const key = openSigner(await storeIdentity(store, clock), config).verifier;
      const { events, deliveries, copiedBefore, fault, late } = await copyStore({
        source,
        target,
        key,
        author,
        clock,
        markMoved: () => markMoved(to, { folder: config.FUEL_DATA_DIR, store, author, clock }),
        onProgress: ({ step, done }) => out.progress(`${step}: ${done}`),
      });
      if (fault !== undefined) out.note(copyFaultText(fault));
      for (const event of late) out.note(`${textOfRef(event)} (${event.type}) is not in the target`);
      if (copiedBefore) out.note('The store was copied before. This time its events were only proven again');
      const verified = fault === undefined && late.length === 0;
      out.answer({ events, deliveries, verified });
      if (verified) out.note('Next: fuel serve, and fuel verify once its view is built');
      const { parked } = await groupStatus(store, embedded.subscriptions(), DELIVERIES_GROUP);
      if (parked > 0)
        out.note(
          `${parked} events are parked in the group ${DELIVERIES_GROUP} here. The group of the copy gets them again`,
        );
      return verified ? 0 : 1;
    } finally {
      await store.close();
      await embedded.close();
    }
  },
});

const unmarkStore = command({
  name: 'unmark',
  summary:
    'use an embedded store again after "fuel store copy" has marked it as moved; nothing may use the copy',
  example: 'fuel store unmark --reason "the cluster was given up before it was used"',
  syntax: withReason,
  ownStoreCheck: true,
  async work({ config, engines, clock, author, out }, _args, { reason }) {
    if (!engines.embedded.includes('store')) {
      throw new FuelError(
        'REFUSED',
        `Only an embedded store is marked as moved. Do not set ${settingsFor('store')}`,
      );
    }
    const events = hasStore(config, engines) ? engines.store() : undefined;
    if (events !== undefined) await assertBinding(events, config);
    const { to } = await unmark(reason, { folder: config.FUEL_DATA_DIR, store: events, author, clock });
    out.answer({ unmarked: true, to });
  },
});

const trustKey = command({
  name: 'trust-key',
  summary:
    'accept the current master key after the old one was lost; webhook secrets encrypted with the lost key can no longer ' +
    'be read',
  example: 'fuel store trust-key --reason "master.key lost with the disk of node 1"',
  syntax: withReason,
  ownStoreCheck: true,
  async work({ config, engines, clock, author, out }, _args, { reason }) {
    requireStore(config, engines);
    await assertNotMoved({ ...config, ...engines }, engines.store());
    const key = await trustMasterKey(engines.store(), config, { author, reason, clock });
    out.answer(key);
  },
});

export const addStoreCommands = noun({
  name: 'store',
  summary: 'back up, copy and repair the stores behind the service',
  example: 'fuel store backup /backups/2026-09-03',
  commands: [backup, copy, unmarkStore, trustKey],
});

function withReason(it: Command) {
  return it.requiredOption('--reason <reason>', REASON, readText).option(...ACTOR_OPTION);
}

function copyFaultText(fault: LogFault): string {
  if (fault.kind === 'checkpoint')
    return `The target does not begin with the ${fault.size} events of the source. Copy into an empty one`;
  return `In the target, ${faultText(fault)}. Run \`fuel audit verify\` on the source: if it holds there, copy into an empty target`;
}

function endOf(engines: Engines): CopyEnd {
  return { store: engines.store(), queue: engines.queue(), coordination: engines.coordination() };
}

/** The servers that can serve a port, as a summary names them. */
function targetsFor(port: PortName): string {
  const able = servers.filter(({ ports }) => ports.includes(port));
  return able.map(({ title, setting }) => `${title} (${setting})`).join(' or ');
}
