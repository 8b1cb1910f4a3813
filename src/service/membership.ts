import type { Log } from '../base/log.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import type { EventStore } from '../event-store/event-store.ts';
import type { Standing } from './ops/standing.ts';

/**
 * What a process must have applied before it may judge access again.
 *
 * A command with `--wait` waits for the processes that have reported themselves lately. One that could not, because
 * the coordination store was unavailable, is not waited for: a key may have been switched off meanwhile. So after such
 * a time, and at its start, a process first reports itself, then applies everything that was recorded before that.
 */
export class Membership {
  readonly #store: Pick<EventStore, 'head'>;
  readonly #log: Log;
  readonly #signal: AbortSignal;
  readonly #standing: Standing;
  #joins = 0;

  constructor(
    store: Pick<EventStore, 'head'>,
    options: { readonly log: Log; readonly signal: AbortSignal; readonly standing: Standing },
  ) {
    this.#store = store;
    this.#log = options.log;
    this.#signal = options.signal;
    this.#standing = options.standing;
  }

  /** The others know of this process from now on. */
  joined(): void {
    this.#joins += 1;
    this.#standing.mustReach(undefined);
    this.#learnEnd(this.#joins).catch((error: unknown) => {
      if (!this.#signal.aborted)
        this.#log.error({ err: error }, 'the end of the log can not be read: no request is served');
    });
  }

  async #learnEnd(join: number): Promise<void> {
    const retry = { log: this.#log, signal: this.#signal, component: 'membership' };
    const end = await retryWhileUnavailable(() => this.#store.head(), retry);
    if (join === this.#joins) this.#standing.mustReach(end);
  }
}
