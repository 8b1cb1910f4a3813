import type { Clock } from '../../../clock.ts';
import type { Coordination } from '../../../coordination/coordination.ts';
import type { Log } from '../../../log.ts';
import { DIRECTORY_SNAPSHOT_VERSION, type SnapshotContent, snapshotParts } from './snapshot.ts';
import type { DirectorySnapshots, SnapshotHeader } from './snapshots.ts';

const SNAPSHOT_LEASE = 'directory-snapshot';

/** A starting process reads at most about as many again. */
const EVENTS_BETWEEN = 1_000;
/** Fewer events are saved after this time. */
const MAX_BETWEEN_MS = 600_000;
/** After a failure, or while another process saves. */
const RETRY_AFTER_MS = 60_000;
/** Of what the last save took: many changes at once must not be saved over and over, which delays applying them. */
const REST_TIMES = 10;
/** Where saving takes longer, two processes may save at once: then the later snapshot stays. */
const LEASE_MS = 120_000;

export interface KeeperOptions {
  readonly snapshots: DirectorySnapshots;
  readonly coordination: Coordination;
  readonly holder: string;
  readonly storeId: () => Promise<string>;
  /** The directory as of now, with its position. */
  readonly content: () => (SnapshotContent & { readonly position: number }) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Saves the directory from time to time, in the background and in small parts. One process saves at a time, and a
 * snapshot that another has just saved is not saved again. A failure is logged and retried.
 */
export class DirectorySnapshotKeeper {
  readonly #options: KeeperOptions;
  /** Account events since the last known snapshot. */
  #unsaved = 0;
  #unsavedSinceMs = 0;
  #notBeforeMs = 0;
  #isDue = false;
  /** Of the last known snapshot, usable or not. */
  #knownPosition: number | undefined;
  #saving: Promise<void> | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** A snapshot was found when the directory was restored. One that could not be used is replaced at once. */
  found(header: SnapshotHeader | undefined, isUsable: boolean): void {
    this.#knownPosition = header?.position;
    this.#isDue = !isUsable;
  }

  /** Reports applied account events, perhaps none. Starts to save when it is time and `mayBegin`. */
  applied(events: number, mayBegin: boolean): void {
    const nowMs = this.#options.clock.now();
    if (this.#unsaved === 0) this.#unsavedSinceMs = nowMs;
    this.#unsaved += events;
    if (!mayBegin || this.#unsaved === 0 || this.#saving !== undefined || nowMs < this.#notBeforeMs) return;
    const isFew = this.#unsaved < EVENTS_BETWEEN && nowMs - this.#unsavedSinceMs < MAX_BETWEEN_MS;
    if (isFew && !this.#isDue) return;
    this.#saving = this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  async settle(): Promise<void> {
    await this.#saving;
  }

  async #save(): Promise<void> {
    const { coordination, holder, clock, log, signal } = this.#options;
    const startedAtMs = clock.now();
    try {
      if (await coordination.acquire(SNAPSHOT_LEASE, holder, LEASE_MS)) {
        try {
          await this.#saveInTurn();
        } finally {
          await coordination.release(SNAPSHOT_LEASE, holder);
        }
        this.#notBeforeMs = clock.now() + REST_TIMES * (clock.now() - startedAtMs);
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, 'the snapshot of the directory could not be saved: retrying in a minute');
    }
    this.#notBeforeMs = clock.now() + RETRY_AFTER_MS;
  }

  async #saveInTurn(): Promise<void> {
    const { snapshots, content, log } = this.#options;
    const storeId = await this.#options.storeId();
    const stored = await snapshots.load();
    const present = content();
    if (present === undefined) throw new Error('a directory without events has nothing to save');
    const { position, ...now } = present;
    if (stored !== undefined && this.#isNewer(stored.header, { storeId, position })) {
      this.#knownPosition = stored.header.position;
      this.#unsaved = 0;
      this.#isDue = false;
      return;
    }
    const saved = this.#unsaved;
    this.#unsaved = 0;
    try {
      await snapshots.save(
        { version: DIRECTORY_SNAPSHOT_VERSION, storeId, position },
        this.#untilAborted(snapshotParts(now)),
      );
    } catch (error) {
      this.#unsaved += saved;
      throw error;
    }
    this.#knownPosition = position;
    this.#isDue = false;
    log.info({ position }, 'directory snapshot saved');
  }

  /** Whether another process has saved a usable one since the last that this process knows. */
  #isNewer(header: SnapshotHeader, own: { readonly storeId: string; readonly position: number }): boolean {
    if (header.version !== DIRECTORY_SNAPSHOT_VERSION || header.storeId !== own.storeId) return false;
    return header.position !== this.#knownPosition && header.position <= own.position;
  }

  *#untilAborted(parts: Iterable<Uint8Array>): Generator<Uint8Array, void> {
    for (const part of parts) {
      this.#options.signal.throwIfAborted();
      yield part;
    }
  }
}
