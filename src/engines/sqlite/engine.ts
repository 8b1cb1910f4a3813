import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createMemoryRateWindows } from '../../pull/edge/rate-windows/memory.ts';
import type { EnginePorts, OpenedEngine, Opening } from '../../service/engines/engine.ts';
import { EMBEDDED_FILES, type EmbeddedFile, embeddedFile, stateOfFile } from './embedded-files.ts';
import { openSqliteEventStore, type SqliteEventStore } from './event-store/event-store.ts';
import { SqliteSubscriptions } from './event-store/subscriptions.ts';
import { openSqliteTables } from './tables/tables.ts';

const IN_MEMORY = ':memory:';

/** Opens the embedded engine. It needs no setting, and serves every port that no server serves. */
export function openEmbedded(opening: Opening): OpenedEngine & { readonly ports: EnginePorts } {
  const { config, clock, once, onMissing } = opening;
  const file = (name: string) => {
    const ofFile = `${name}.db`;
    if (onMissing === undefined || existsSync(join(config.FUEL_DATA_DIR, ofFile)))
      return { path: embeddedFile(config, ofFile), clock };
    onMissing(ofFile);
    return { path: IN_MEMORY, clock };
  };
  const store = once(() => openSqliteEventStore(file('events')));
  return {
    state: async (kept) => stateOfFile(config, (typeof kept === 'string' ? kept : kept.name) as EmbeddedFile),
    ports: {
      events: {
        store,
        subscriptions: once(() => new SqliteSubscriptions({ ...file('subscriptions'), store: store() })),
      },
      tables: (plan) => openSqliteTables(plan, file(plan.name)),
      rateWindows: () => createMemoryRateWindows(),
    },
  };
}

/** Opens the embedded event store itself, which has more methods than the port, for `fuel store copy`. */
export function openEmbeddedEvents(config: Config, clock: Clock): SqliteEventStore {
  return openSqliteEventStore({ path: embeddedFile(config, EMBEDDED_FILES.events), clock });
}
