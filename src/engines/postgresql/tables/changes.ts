import type { ChangeListener } from '../../../tables/tables.ts';
import { PolledChanges } from '../../tables/polled-changes.ts';
import type { PostgresConnection } from '../driver/connection.ts';

const TELL_MS = 2_000;

export interface ToldChangesOptions {
  readonly connection: PostgresConnection;
  /** The name of the store. */
  readonly store: string;
  readonly pollMs?: number | undefined;
}

/** Tells other threads and processes at once. It also notifies at intervals, since an announcement may be lost. */
export class ToldChanges extends PolledChanges {
  readonly #options: ToldChangesOptions;
  #endHearing: (() => void) | undefined;
  #isTelling = false;
  #isUntold = false;

  constructor(options: ToldChangesOptions) {
    super(options.pollMs);
    this.#options = options;
  }

  override add(listener: ChangeListener): void {
    super.add(listener);
    const { connection, store } = this.#options;
    this.#endHearing ??= connection.notifications.hear(store, () => this.notifyHere());
  }

  override notify(): void {
    this.notifyHere();
    this.#isUntold = true;
    if (!this.#isTelling) void this.#tell();
  }

  override close(): void {
    this.#endHearing?.();
    super.close();
  }

  /**
   * Makes one announcement at a time, for everything written since the last one. If one fails, listeners find the
   * changes at the next interval.
   */
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
