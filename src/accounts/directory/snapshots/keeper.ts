import type { Clock } from '../../../clock.ts';
import type { Coordination } from '../../../coordination/coordination.ts';
import type { Log } from '../../../log.ts';
import { DIRECTORY_SNAPSHOT_VERSION, type SnapshotContent, snapshotParts } from './snapshot.ts';
import type { DirectorySnapshots, SnapshotHeader } from './snapshots.ts';

export const SNAPSHOT_LEASE = 'directory-snapshot';

/** A process that starts reads at most some of these again. */
const EVENTS_BETWEEN = 1_000;
/** Fewer are saved after this. */
const MAX_BETWEEN_MS = 600_000;
/** After a failure, or while another process saves. */
const AGAIN_AFTER_MS = 60_000;
/** Should saving take longer, two may save at once: then the later snapshot stays. */
const LEASE_MS = 120_000;

export interface KeeperOptions {
  readonly snapshots: DirectorySnapshots;
  readonly coordination: Coordination;
  /** Names this process among those that save. */
  readonly holder: string;
  readonly storeId: () => Promise<string>;
  /** The directory as of now, with its position. */
  readonly content: () => SnapshotContent & { readonly position: number };
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Saves the directory now and then, in the background and in small parts; of all processes one at a time, and none
 * that another has just done the work of. A failure is logged and tried again.
 */
export class DirectorySnapshotKeeper {
  readonly #options: KeeperOptions;
  /** Account events since the last snapshot that is known. */
  #unsaved = 0;
  #unsavedSinceMs = 0;
  #notBeforeMs = 0;
  /** Where the last snapshot stands that is known, usable or not. */
  #knownPosition: number | undefined;
  #saving: Promise<void> | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** There is a snapshot, which was found when the directory was restored. */
  found({ position }: SnapshotHeader): void {
    this.#knownPosition = position;
  }

  /** So many account events were applied, none perhaps. Saves where it is time to and `mayBegin`. */
  applied(events: number, mayBegin: boolean): void {
    const nowMs = this.#options.clock.now();
    if (this.#unsaved === 0) this.#unsavedSinceMs = nowMs;
    this.#unsaved += events;
    if (!mayBegin || this.#unsaved === 0 || this.#saving !== undefined || nowMs < this.#notBeforeMs) return;
    if (this.#unsaved < EVENTS_BETWEEN && nowMs - this.#unsavedSinceMs < MAX_BETWEEN_MS) return;
    this.#saving = this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  /** Resolves when nothing is being saved. */
  async settle(): Promise<void> {
    await this.#saving;
  }

  async #save(): Promise<void> {
    const { coordination, holder, clock, log, signal } = this.#options;
    try {
      if (await coordination.acquire(SNAPSHOT_LEASE, holder, LEASE_MS)) {
        try {
          await this.#saveInTurn();
        } finally {
          await coordination.release(SNAPSHOT_LEASE, holder);
        }
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, 'the snapshot of the directory could not be saved; trying again');
    }
    this.#notBeforeMs = clock.now() + AGAIN_AFTER_MS;
  }

  async #saveInTurn(): Promise<void> {
    const { snapshots, content, log } = this.#options;
    const storeId = await this.#options.storeId();
    const stored = await snapshots.load();
    const { position, ...now } = content();
    if (stored !== undefined && this.#isNews(stored.header, { storeId, position })) {
      this.#knownPosition = stored.header.position;
      this.#unsaved = 0;
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
    log.info({ position }, 'directory snapshot saved');
  }

  /** Whether another process has saved one that will do since this one last knew. */
  #isNews(header: SnapshotHeader, own: { readonly storeId: string; readonly position: number }): boolean {
    if (header.version !== DIRECTORY_SNAPSHOT_VERSION || header.storeId !== own.storeId) return false;
    return header.position !== this.#knownPosition && header.position <= own.position;
  }

  *#untilAborted(parts: Iterable<string>): Generator<string, void> {
    for (const part of parts) {
      this.#options.signal.throwIfAborted();
      yield part;
    }
  }
}
