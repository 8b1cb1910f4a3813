import { type Clock, steadyClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { world } from '../../base/world.ts';
import { ACCOUNT_STREAMS, type AccountEvent, accountStream } from '../../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import {
  type Position,
  type RecordedEvent,
  SETTINGS_STREAMS,
  streamHiddenBy,
} from '../../event-store/recorded-event.ts';
import { NONE_SKIPPED, readSkipped, skippedBy, withSkipped } from '../../event-store/skipped-events.ts';
import { type Anchor, anchorOf, storeIdentity } from '../../event-store/store-identity.ts';
import { DIRECTORY_STREAMS, directoryEvent, firstShown, restoreDirectory } from './apply-to-directory.ts';
import type { Directory } from './fold/directory.ts';
import type { DirectoryAccount } from './fold/directory-entry.ts';
import { DirectorySaver } from './rows/saver.ts';
import { type SharedRows, sharedRows } from './rows/shared-rows.ts';
import type { DirectoryContent, StoredDirectory } from './rows/stored-directory.ts';

export interface LiveDirectoryOptions {
  readonly store: EventStore;
  /** A new directory, to which nothing has been applied yet. */
  readonly directory: Directory;
  readonly clock: Clock;
  /** Measures the store's silence. */
  readonly steady?: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** If given, the directory starts from the stored one instead of the first event, and is saved there. */
  readonly stored?: StoredDirectory;
  /** The rows that the main thread started from. This thread starts from them too. */
  readonly shared?: SharedRows | undefined;
  /** Called after each batch, even an empty one. */
  readonly onMoved?: (position: number) => void;
  /**
   * Called with each readable event, history included, once the directory has applied it. Of the history that the
   * stored directory covers, only the `keyEvents` are reported.
   */
  readonly onEvent?: (event: AccountEvent, place: AccountEventPlace) => void;
}

export interface AccountEventPlace {
  readonly position: number;
  readonly atMs: number;
}

/** The in-memory directory of one process, which follows the account streams. */
export class LiveDirectory {
  readonly #options: LiveDirectoryOptions;
  readonly #saver: DirectorySaver | undefined;
  #skipped = NONE_SKIPPED;
  #loaded: SharedRows | undefined;
  #anchor: Anchor | undefined;
  /** The position to store. The directory's own position may be that of a record that the log does not show. */
  #checkpoint = 0;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #caughtUp = false;
  readonly #firstCaughtUp = Promise.withResolvers<void>();

  constructor(options: LiveDirectoryOptions) {
    this.#options = options;
    const { store, clock, log, signal, stored } = options;
    if (stored === undefined) return;
    const storeId = (): Promise<string> => storeIdentity(store, clock);
    this.#saver = new DirectorySaver({ stored, storeId, content: () => this.#content(), clock, log, signal });
  }

  get directory(): Directory {
    return this.#options.directory;
  }

  /** Resolves when the end of the log is reached for the first time. */
  get whenCaughtUp(): Promise<void> {
    return this.#firstCaughtUp.promise;
  }

  /** True once the end of the log has been reached; from then on the directory lags by milliseconds. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** Milliseconds since the event store last answered; infinite before the first time. */
  get silenceMs(): number {
    return (this.#options.steady ?? steadyClock).now() - this.#answeredAtMs;
  }

  /**
   * Follows the account streams until the signal aborts. While a store is unavailable it waits, then continues where it
   * stopped. Rejects with the store's other errors.
   */
  async run(): Promise<void> {
    const { log, signal } = this.#options;
    const retry = { log, signal, component: 'directory' };
    try {
      await retryWhileUnavailable(() => this.#restore(), retry);
      await retryWhileUnavailable((available) => this.#follow(available), retry);
    } finally {
      await this.#saver?.settle();
    }
  }

  async #follow(available: () => void): Promise<void> {
    const { store, directory, steady = steadyClock, log, signal, onMoved } = this.#options;
    const batches = store.subscribe({
      prefixes: [...DIRECTORY_STREAMS, OPERATIONS_STREAM],
      after: directory.position,
      signal,
    });
    for await (const batch of batches) {
      for (const event of batch.events) {
        if (event.stream.startsWith(ACCOUNT_STREAMS)) this.#apply(event);
        else if (event.stream === OPERATIONS_STREAM) await this.#skip(event);
        else await this.#changeSettings(event);
      }
      directory.advance(batch.position);
      this.#checkpoint = batch.checkpoint;
      this.#answeredAtMs = steady.now();
      available();
      if (batch.caughtUp && !this.#caughtUp) {
        this.#caughtUp = true;
        this.#firstCaughtUp.resolve();
        log.info({ position: batch.position }, 'directory caught up');
      }
      this.#saver?.applied(batch.events.length, this.#caughtUp);
      onMoved?.(batch.position);
    }
  }

  /**
   * Starts from the shared or stored rows. Rejects with `STORE_UNAVAILABLE`, with nothing changed: reading the whole
   * log instead may take too long.
   */
  async #restore(): Promise<void> {
    const { shared, store, directory, log, onEvent } = this.#options;
    this.#skipped = await readSkipped(store);
    const loaded = shared ?? (await this.#load());
    if (loaded === undefined) return;
    await restoreDirectory(directory, loaded, { store, skipped: this.#skipped });
    this.#loaded = loaded;
    this.#anchor = loaded.anchor;
    this.#checkpoint = loaded.position;
    for (const { event, ...place } of directory.keyEvents()) onEvent?.(event, place);
    log.info({ position: loaded.position }, 'directory restored');
  }

  async #load(): Promise<SharedRows | undefined> {
    const { stored, store, clock, log } = this.#options;
    const loading = await stored?.load(store, clock);
    if (loading?.kind === 'loaded') return loading.loaded;
    if (loading?.kind !== 'unusable') return undefined;
    const { reason, checkpoint } = loading;
    log.warn(
      { reason },
      'the stored directory cannot be used: reading every account event, and replacing it',
    );
    this.#saver?.foundUnusable(checkpoint.mac);
    return undefined;
  }

  #apply(recorded: RecordedEvent): void {
    const { directory, onEvent } = this.#options;
    const { decoded, ...place } = directoryEvent(recorded, this.#skipped);
    const unreadable = directory.apply({ decoded, ...place });
    this.#anchor = anchorOf([recorded]) ?? this.#anchor;
    if (decoded.ok) onEvent?.(decoded.event, { position: place.position, atMs: decoded.atMs });
    this.#report(unreadable);
  }

  #report(closed: DirectoryAccount | undefined): void {
    if (closed === undefined) return;
    const { log } = this.#options;
    log.error({ account: closed.id, ...closed.unreadable }, 'account unreadable: nothing of it is served');
  }

  /** Closes an account of whose events a server hides some, and folds it again once the server shows them all. */
  async #changeSettings(settings: RecordedEvent): Promise<void> {
    const { store, directory, log } = this.#options;
    const hidden = streamHiddenBy(settings);
    const shown = await firstShown(store, settings);
    if (shown !== undefined) this.#report(directory.close(shown));
    if (hidden !== undefined) return;
    const stream = settings.stream.slice(SETTINGS_STREAMS.length);
    if (await this.#refold(stream, settings.position))
      log.info({ stream }, 'an account is judged by all of its events again');
  }

  /** Folds an account again without the event that the operator has skipped. */
  async #skip(operation: RecordedEvent): Promise<void> {
    const place = skippedBy(operation);
    if (place === undefined) return;
    this.#skipped = withSkipped(this.#skipped, place);
    if (await this.#refold(place.stream, operation.position))
      this.#options.log.info(place, 'an event was skipped: its account is judged without it');
  }

  /** Folds an unreadable account again, by the events of its stream up to a position. Returns false if it is readable. */
  async #refold(stream: string, upTo: Position): Promise<boolean> {
    const { store, directory, onEvent } = this.#options;
    const account = Iterator.from(directory.accounts()).find(({ id }) => accountStream(id) === stream);
    if (account === undefined || account.unreadable === null) return false;
    const events = (await store.readStream(stream))
      .filter(({ position }) => position <= upTo)
      .map((recorded) => directoryEvent(recorded, this.#skipped));
    directory.refold(account.id, events);
    for (const { position, decoded } of events)
      if (decoded.ok) onEvent?.(decoded.event, { position, atMs: decoded.atMs });
    return true;
  }

  /** The rows that other threads of the process start from; `undefined` if there has been no event yet. */
  get shared(): SharedRows | undefined {
    if (this.#loaded !== undefined || this.#anchor === undefined) return this.#loaded;
    return sharedRows(this.#options.directory.states(), { position: this.#checkpoint, anchor: this.#anchor });
  }

  #content(): DirectoryContent {
    const { directory } = this.#options;
    return { position: this.#checkpoint, anchor: this.#anchor, states: () => directory.states() };
  }
}

/** A directory that lags by more than this has lost its store or has a lot to read. */
const MAX_WAIT_MS = 100;

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
}

/** Waits until a live directory has reached a position. */
export class DirectoryReach {
  readonly #waiting = new Set<Waiter>();
  #position: Position = 0;

  moved(position: Position): void {
    this.#position = position;
    for (const waiter of this.#waiting) if (waiter.position <= position) waiter.resolve();
  }

  /** Resolves when the directory has reached `position`, or after a tenth of a second: the caller must check again. */
  async reach(position: Position): Promise<void> {
    if (this.#position >= position) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { position, resolve };
    const timer = world.setTimeout(resolve, MAX_WAIT_MS);
    this.#waiting.add(waiter);
    await promise;
    world.clearTimeout(timer);
    this.#waiting.delete(waiter);
  }
}
