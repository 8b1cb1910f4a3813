import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { bindStore } from '../../../accounts/store-binding.ts';
import { systemClock } from '../../../base/clock.ts';
import type { Config } from '../../../base/config/config.ts';
import { FuelError } from '../../../base/errors.ts';
import { settingsFor } from '../../../engines/engines.ts';
import { EMBEDDED_FILES } from '../../../engines/sqlite/embedded-files.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { boundStore } from './bound-store.ts';
import type { Output } from './output.ts';

/** Throws `REFUSED` if the events are embedded and their file does not exist. */
export function requireStore(config: Config, engines: Pick<Engines, 'embedded'>): void {
  if (hasStore(config, engines)) return;
  throw new FuelError(
    'REFUSED',
    `there is no store in ${resolve(config.FUEL_DATA_DIR)}: set FUEL_DATA_DIR to the service's data directory, or ` +
      settingsFor('store'),
  );
}

export function hasStore({ FUEL_DATA_DIR }: Config, { embedded }: Pick<Engines, 'embedded'>): boolean {
  return !embedded.includes('store') || existsSync(join(FUEL_DATA_DIR, EMBEDDED_FILES.events));
}

/** A command's engines. */
export interface CommandEngines extends Engines {
  /**
   * Checks that the store belongs to the configuration (see `bindStore`). The first append does so too; this is for
   * work before it.
   */
  readonly bind: () => Promise<unknown>;
}

/**
 * The engines as a command may use them. A command that only reads is refused if there is no store, since opening one
 * would create it. A command that records is refused a store of another environment or master key, and says where it
 * creates one.
 */
export function commandEngines(
  engines: Engines,
  config: Config,
  {
    records,
    note,
  }: {
    /** Whether the command may create a store and record events in it. */
    readonly records: boolean;
    readonly note: (line: string) => void;
  },
): CommandEngines {
  let exists = hasStore(config, engines);
  const check = (): void => {
    if (exists) return;
    if (!records) requireStore(config, engines);
    exists = true;
    note(`a new store was made in ${resolve(config.FUEL_DATA_DIR)}`);
  };
  const checked =
    <T>(open: () => T): (() => T) =>
    () => {
      check();
      return open();
    };
  let bound: Promise<unknown> | undefined;
  const bind = (): Promise<unknown> => {
    check();
    bound ??= bindStore(engines.store(), config, { clock: systemClock });
    return bound;
  };
  return {
    ...engines,
    bind,
    store: checked(() => boundStore(engines.store(), bind)),
    subscriptions: checked(() => engines.subscriptions()),
    view: checked(() => engines.view()),
    queue: checked(() => engines.queue()),
    coordination: checked(() => engines.coordination()),
    directory: checked(() => engines.directory()),
    requests: checked(() => engines.requests()),
  };
}

/** What a dry run reads: where there is no store yet everything is new, and none is made. */
export function storeOfDryRun({
  config,
  engines,
  out,
}: {
  readonly config: Config;
  readonly engines: CommandEngines;
  readonly out: Pick<Output, 'note'>;
}): Pick<EventStore, 'readStream' | 'readStreams' | 'append'> {
  if (hasStore(config, engines)) return engines.store();
  out.note(`there is no store in ${resolve(config.FUEL_DATA_DIR)} yet: everything is new`);
  return {
    readStream: async () => [],
    readStreams: async (streams) => streams.map(() => []),
    append: () => Promise.reject(new Error('a dry run records nothing')),
  };
}
