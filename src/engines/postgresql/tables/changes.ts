import type { ChangeListener, ChangeSignal } from '../../../tables/tables.ts';
import { PolledChanges } from '../../tables/polled-changes.ts';
import type { PostgresConnection } from '../driver/connection.ts';

const TELL_MS = 2_000;

export interface ToldChangesOptions {
  readonly connection: PostgresConnection;
  /** The name of the store. */
  readonly store: string;
  readonly pollMs?: number | undefined;
}

/** Tells other threads and processes at once where others wait, and looks now and then, since an announcement may be lost. */
export class ToldChanges implements ChangeSignal {
  readonly #polled: PolledChanges;
  readonly #options: ToldChangesOptions;
  #endHearing: (() => void) | undefined;
  #isTelling = false;
  #isUntold = false;

  constructor(options: ToldChangesOptions) {
    this.#options = options;
    this.#polled = new PolledChanges(options.pollMs);
  }

  add(listener: ChangeListener): void {
    this.#polled.add(listener);
    const { connection, store } = this.#options;
    this.#endHearing ??= connection.notifications.hear(store, () => this.#polled.notify());
  }

  remove(listener: ChangeListener): void {
    this.#polled.remove(listener);
  }

  notify(): void {
    this.#polled.notify();
    this.#isUntold = true;
    if (!this.#isTelling) void this.#tell();
  }

  close(): void {
    this.#endHearing?.();
    this.#polled.close();
  }

  /** One announcement at a time, for all that has been written since the last. One that fails is replaced by the next look. */
  async #tell(): Promise<void> {
    const { connection, store } = this.#options;
    this.#isTelling = true;
    while (this.#isUntold) {
      this.#isUntold = false;
      const announcing = connection.notifications.announcing(store);
      await connection.use(TELL_MS, (run) => run(announcing)).catch(() => undefined);
    }
    this.#isTelling = false;
  }
}
