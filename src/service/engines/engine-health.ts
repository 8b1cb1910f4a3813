import type { Clock } from '../../base/clock.ts';
import { isUnavailable, reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { RemoteEngine } from './engines.ts';

/** The part of an engine that its health check needs. */
export type CheckedEngine = Pick<RemoteEngine, 'name' | 'ping' | 'serves'>;

/** How long a result is kept, so that frequent requests do not load the engines. */
const FRESH_MS = 1_000;

/** Checks which of the remote engines can be reached. */
export class EngineHealth {
  readonly #engines: readonly CheckedEngine[];
  readonly #steady: Clock;
  #checked: { readonly atMs: number; readonly state: Promise<Record<string, true | string>> } | undefined;

  constructor(engines: readonly CheckedEngine[], steady: Clock) {
    this.#engines = engines;
    this.#steady = steady;
  }

  /** Returns, by name, true for an engine that answers or the reason why not. Takes at most two seconds. */
  state(): Promise<Readonly<Record<string, true | string>>> {
    const nowMs = this.#steady.now();
    if (this.#checked === undefined || nowMs - this.#checked.atMs > FRESH_MS) {
      this.#checked = { atMs: nowMs, state: this.#check() };
    }
    return this.#checked.state;
  }

  /** The engines that hold only events. A process can do without them until the rows of accounts are too old. */
  get logs(): readonly string[] {
    return this.#engines
      .filter(({ serves }) => serves.every((port) => port === 'events'))
      .map(({ name }) => name);
  }

  /** Waits until every engine answers, and logs for which one it waits. Rejects with the signal's reason. */
  async allReached(log: Log, signal: AbortSignal): Promise<void> {
    for (const engine of this.#engines) {
      await retryWhileUnavailable(engine.ping, { log, signal, component: `start (${engine.name})` });
    }
    signal.throwIfAborted();
  }

  async #check(): Promise<Record<string, true | string>> {
    const states = await Promise.all(
      this.#engines.map(async ({ name, ping }): Promise<[string, true | string]> => {
        try {
          await ping();
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
