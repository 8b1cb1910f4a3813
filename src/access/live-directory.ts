import type { Directory } from '../../projections/directory.ts';
import type { Clock } from '../clock.ts';
import { ACCOUNT_STREAMS, type AccountEvent } from '../domain/account-events.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import type { Log } from '../log.ts';
import { applyRead, readAccountEvent } from './apply-to-directory.ts';

export interface LiveDirectoryOptions {
  readonly store: EventStore;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called whenever the directory has moved on or has heard from the store again. */
  readonly onMoved?: (position: number) => void;
  /** Called with each event that could be read, history included, once the directory has it. */
  readonly onEvent?: (event: AccountEvent, place: AccountEventPlace) => void;
}

/** Where an account's event stands in the log, and when it happened. */
export interface AccountEventPlace {
  readonly position: number;
  readonly atMs: number;
}

/** The in-memory directory of one process, kept up with the account streams. */
export class LiveDirectory {
  readonly #options: LiveDirectoryOptions;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #caughtUp = false;

  constructor(options: LiveDirectoryOptions) {
    this.#options = options;
  }

  get directory(): Directory {
    return this.#options.directory;
  }

  /** Whether every account event of the log has been applied once; it lags by milliseconds from then on. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** Milliseconds since the event store was last heard from; infinite before the first time. */
  get silenceMs(): number {
    return this.#options.clock.now() - this.#heardAtMs;
  }

  /** Follows the account streams until the signal aborts. Rejects with what the store rejects with. */
  async run(): Promise<void> {
    const { store, directory, clock, log, signal, onMoved } = this.#options;
    const batches = store.subscribe({ prefixes: [ACCOUNT_STREAMS], after: directory.position, signal });
    for await (const batch of batches) {
      for (const event of batch.events) this.#apply(event);
      directory.advance(batch.position);
      this.#heardAtMs = clock.now();
      if (batch.caughtUp && !this.#caughtUp) {
        this.#caughtUp = true;
        log.info({ position: batch.position }, 'directory caught up');
      }
      onMoved?.(batch.position);
    }
  }

  #apply(event: RecordedEvent): void {
    const read = readAccountEvent(event);
    const closed = applyRead(this.#options.directory, event, read);
    if (read.ok) this.#options.onEvent?.(read.event, { position: event.position, atMs: read.atMs });
    if (closed === undefined) return;
    this.#options.log.error(
      { account: closed.id, ...closed.unreadable },
      'account closed: an event of it can not be read',
    );
  }
}
