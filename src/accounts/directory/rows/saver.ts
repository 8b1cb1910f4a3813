import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { DirectoryContent, StoredDirectory } from './stored-directory.ts';

/** Events after which the directory is saved. A process that starts has to read at most about this many again. */
const EVENTS_BETWEEN = 1_000;
/** The time after which fewer events than that are saved. */
const MAX_BETWEEN_MS = 60_000;
/** The wait after a failure, or after another process has saved. */
const RETRY_AFTER_MS = 60_000;
/**
 * The pause after a save, as a multiple of its duration. Saving too often would delay applying many changes at once.
 */
const REST_TIMES = 10;

export interface SaverOptions {
  readonly stored: Pick<StoredDirectory, 'save'>;
  readonly storeId: () => Promise<string>;
  readonly content: () => DirectoryContent;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Saves the directory from time to time, in the background. A failure is logged and retried. */
export class DirectorySaver {
  readonly #options: SaverOptions;
  /** Account events since the last save. */
  #unsaved = 0;
  #unsavedSinceMs = 0;
  #notBeforeMs = 0;
  /** The MAC of the stored rows, if they could not be used. */
  #unusable: string | undefined;
  #saving: Promise<void> | undefined;

  constructor(options: SaverOptions) {
    this.#options = options;
  }

  /** Reports that the stored rows could not be used. They are replaced at once. */
  foundUnusable(mac: string): void {
    this.#unusable = mac;
  }

  /** Reports how many account events were applied, perhaps none. Starts a save if one is due and `mayBegin` is set. */
  applied(events: number, mayBegin: boolean): void {
    const nowMs = this.#options.clock.now();
    if (this.#unsaved === 0) this.#unsavedSinceMs = nowMs;
    this.#unsaved += events;
    if (!mayBegin || this.#unsaved === 0 || this.#saving !== undefined || nowMs < this.#notBeforeMs) return;
    const isFew = this.#unsaved < EVENTS_BETWEEN && nowMs - this.#unsavedSinceMs < MAX_BETWEEN_MS;
    if (isFew && this.#unusable === undefined) return;
    this.#saving = this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  async settle(): Promise<void> {
    await this.#saving;
  }

  async #save(): Promise<void> {
    const { stored, storeId, content, clock, log, signal } = this.#options;
    const startedAtMs = clock.now();
    const saved = this.#unsaved;
    try {
      const isSaved = await stored.save(content, {
        ...{ storeId: await storeId(), signal },
        unusable: this.#unusable,
      });
      if (isSaved) {
        this.#unsaved -= saved;
        this.#unusable = undefined;
        this.#notBeforeMs = clock.now() + REST_TIMES * (clock.now() - startedAtMs);
        log.info({ position: content().position }, 'directory saved');
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, 'the directory could not be saved: retrying in a minute');
    }
    this.#notBeforeMs = clock.now() + RETRY_AFTER_MS;
  }
}
