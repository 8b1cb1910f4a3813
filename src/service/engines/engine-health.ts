import type { Clock } from '../../base/clock.ts';
import { isUnavailable, reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';

/** The event store's name among the remote engines. */
export const EVENT_STORE = 'eventstoredb';

/** A server that this process depends on. */
export interface RemoteEngine {
  readonly name: typeof EVENT_STORE | 'mongodb';
  /** Resolves when it answers; rejects with `STORE_UNAVAILABLE` within two seconds if it does not. */
  readonly check: () => Promise<void>;
  /** What it says of itself. Rejects with `STORE_UNAVAILABLE` within some seconds if it does not answer. */
  readonly describe: () => Promise<EngineDescription>;
}

export interface EngineDescription {
  /** What the server calls itself, where one setting is for several kinds. */
  readonly name?: string;
  readonly version: string;
  /** Its clock, milliseconds; EventStoreDB cuts off to whole seconds. */
  readonly clockMs: number;
}

/** As far as its health is concerned. */
export type CheckedEngine = Pick<RemoteEngine, 'name' | 'check'>;

/** How long a result is kept, so that frequent requests do not load the engines. */
const FRESH_MS = 1_000;

/** Which of the remote engines can be reached. */
export class EngineHealth {
  readonly #engines: readonly CheckedEngine[];
  readonly #clock: Clock;
  #checked: { readonly atMs: number; readonly state: Promise<Record<string, true | string>> } | undefined;

  constructor(engines: readonly CheckedEngine[], clock: Clock) {
    this.#engines = engines;
    this.#clock = clock;
  }

  /** By name, whether each answers, or why not; empty if everything is embedded. Takes two seconds at most. */
  state(): Promise<Readonly<Record<string, true | string>>> {
    const nowMs = this.#clock.now();
    if (this.#checked === undefined || nowMs - this.#checked.atMs > FRESH_MS) {
      this.#checked = { atMs: nowMs, state: this.#check() };
    }
    return this.#checked.state;
  }

  /** Waits until every engine answers, and logs for which one it waits. Rejects with the signal's reason. */
  async allReached(log: Log, signal: AbortSignal): Promise<void> {
    for (const engine of this.#engines) {
      await retryWhileUnavailable(engine.check, { log, signal, component: `start (${engine.name})` });
    }
    signal.throwIfAborted();
  }

  async #check(): Promise<Record<string, true | string>> {
    const states = await Promise.all(
      this.#engines.map(async ({ name, check }): Promise<[string, true | string]> => {
        try {
          await check();
          return [name, true];
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          return [name, reasonOf(error)];
        }
      }),
    );
    return Object.fromEntries(states);
  }
}
