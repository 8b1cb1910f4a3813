import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BoundStore } from '../../accounts/bound-store.ts';
import { bindStore } from '../../accounts/store-binding.ts';
import { EMBEDDED_FILES, type Engines } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { FuelError } from '../../errors.ts';

/** Throws `REFUSED` where the events are embedded and there are none. */
export function requireStore(config: Config): void {
  if (hasStore(config)) return;
  throw new FuelError(
    'REFUSED',
    `there is no store in ${resolve(config.FUEL_DATA_DIR)}: set FUEL_DATA_DIR to the service's data directory, or ` +
      'EVENTSTORE_URL',
  );
}

function hasStore({ EVENTSTORE_URL, FUEL_DATA_DIR }: Config): boolean {
  return EVENTSTORE_URL !== undefined || existsSync(join(FUEL_DATA_DIR, EMBEDDED_FILES.events));
}

export interface JudgedEnginesOptions {
  readonly config: Config;
  /** Whether the command may make a store and record in it. */
  readonly records: boolean;
  readonly note: (line: string) => void;
}

/** A command's engines. */
export interface JudgedEngines extends Engines {
  /**
   * Makes sure that the store is the configuration's (see `bindStore`), which the first append does too: for what is
   * done before one.
   */
  readonly bind: () => Promise<unknown>;
}

/**
 * The engines as a command may use them. One that only reads is refused where there is no store, instead of making one;
 * one that records is refused a store of another environment or master key, and says where it makes one.
 */
export function judgedEngines(engines: Engines, options: JudgedEnginesOptions): JudgedEngines {
  const { config, records, note } = options;
  let isThere = hasStore(config);
  const judged =
    <T>(open: () => T): (() => T) =>
    () => {
      if (isThere) return open();
      if (!records) requireStore(config);
      isThere = true;
      note(`a new store was made in ${resolve(config.FUEL_DATA_DIR)}`);
      return open();
    };
  const store = judged(() => new BoundStore(engines.store(), bind));
  let bound: Promise<unknown> | undefined;
  const bind = (): Promise<unknown> => {
    judged(() => undefined)();
    bound ??= bindStore(engines.store(), config, { clock: systemClock });
    return bound;
  };
  return {
    remote: engines.remote,
    close: () => engines.close(),
    rateWindows: () => engines.rateWindows(),
    store,
    bind,
    subscriptions: judged(() => engines.subscriptions()),
    view: judged(() => engines.view()),
    queue: judged(() => engines.queue()),
    deliveryLog: judged(() => engines.deliveryLog()),
    coordination: judged(() => engines.coordination()),
    snapshots: judged(() => engines.snapshots()),
  };
}
