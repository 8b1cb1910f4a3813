import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { createMemoryRateWindows } from '../../pull/edge/rate-windows/memory.ts';
import type { EnginePorts, OpenedEngine, Opening } from '../../service/engines/engine.ts';
import type { StorePlan } from '../../tables/plan.ts';
import { EMBEDDED_FILES, type EmbeddedFile, embeddedFile, stateOf } from './embedded-files.ts';
import { openSqliteEventStore, type SqliteEventStore } from './event-store/event-store.ts';
import { SqliteSubscriptions } from './event-store/subscriptions.ts';
import { openSqliteTables } from './tables/tables.ts';

/** The cache of a store that may be large, for the inner pages of its indexes and the leaves in use. */
const CACHE_MIB = 8;

const IN_MEMORY = ':memory:';

/** Opens the embedded engine. It needs no setting, and serves every port that no server serves. */
export function openEmbedded(opening: Opening): OpenedEngine & { readonly ports: EnginePorts } {
  const { config, clock, log, once, onMissing } = opening;
  const file = <T extends object>(name: string, ofMade: T) => {
    const ofFile = `${name}.db`;
    if (onMissing === undefined || existsSync(join(config.FUEL_DATA_DIR, ofFile)))
      return { ...embeddedFile(config, clock, ofFile), ...ofMade };
    onMissing(ofFile);
    return { path: IN_MEMORY, clock };
  };
  /** Options for files that can be recreated without a loss for customers. */
  const recreated = (name: string) =>
    file(name, {
      onPutAside: (aside: string): void =>
        log.error(
          { file: `${name}.db`, aside },
          'a damaged file was put aside and is recreated: check the disk',
        ),
    });
  const fileOf = ({ name, isRecreated }: StorePlan) =>
    isRecreated ? recreated(name) : file(name, { cacheMiB: CACHE_MIB });
  const store = once(() => openSqliteEventStore(file('events', {})));
  return {
    state: async (kept) => stateOf(config, (typeof kept === 'string' ? kept : kept.name) as EmbeddedFile),
    ports: {
      events: {
        store,
        subscriptions: once(() => new SqliteSubscriptions({ ...recreated('subscriptions'), store: store() })),
      },
      tables: (plan) => openSqliteTables(plan, fileOf(plan)),
      rateWindows: () => createMemoryRateWindows(),
    },
  };
}

/** Opens the embedded event store itself, which has more methods than the port, for `fuel store copy`. */
export function openEmbeddedEvents(config: Config, clock: Clock): SqliteEventStore {
  return openSqliteEventStore(embeddedFile(config, clock, EMBEDDED_FILES.events));
}
