import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { accessOf } from '../../domain/account.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';

/** How often it looks for deliveries that another process has held before it died, or that a wrong clock has kept on hold. */
const LOOK_EVERY_MS = 60_000;

/** The accounts whose deliveries are held, each with the time at which a charging profile gives access again. */
export class HeldAccounts {
  readonly #queue: Pick<DeliveryQueue, 'change' | 'heldAccounts'>;
  readonly #directory: Pick<Directory, 'account'>;
  /** The accounts whose access may have changed. */
  readonly #changed = new Set<number>();
  readonly #opensAtMs = new Map<number, number>();
  #lookAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: {
    readonly queue: Pick<DeliveryQueue, 'change' | 'heldAccounts'>;
    readonly directory: Pick<Directory, 'account'>;
  }) {
    this.#queue = options.queue;
    this.#directory = options.directory;
  }

  /** Notes that deliveries of the account were held, or that its access may have changed. */
  changed(accountId: number): void {
    this.#changed.add(accountId);
  }

  /** When `resume` has to be called next. */
  nextAtMs(): number {
    let nextMs = this.#lookAtMs;
    for (const opensAtMs of this.#opensAtMs.values()) nextMs = Math.min(nextMs, opensAtMs);
    return nextMs;
  }

  /** Makes the held deliveries of accounts with access due. Rejects as the queue does. */
  async resume(nowMs: number): Promise<void> {
    if (nowMs >= this.#lookAtMs || nowMs < this.#lookAtMs - LOOK_EVERY_MS) {
      for (const accountId of await this.#queue.heldAccounts()) this.#changed.add(accountId);
      this.#lookAtMs = nowMs + LOOK_EVERY_MS;
    }
    for (const [accountId, opensAtMs] of this.#opensAtMs)
      if (opensAtMs <= nowMs) this.#changed.add(accountId);
    for (const accountId of [...this.#changed]) {
      const access = accessOf(this.#directory.account(accountId)?.account, nowMs);
      this.#changed.delete(accountId); // first, so that an account that is held meanwhile is checked again
      if (access.open) await this.#resume(accountId, nowMs);
      if (access.open || access.opensAtMs === undefined) this.#opensAtMs.delete(accountId);
      else this.#opensAtMs.set(accountId, access.opensAtMs);
    }
  }

  async #resume(accountId: number, nowMs: number): Promise<void> {
    try {
      await this.#queue.change({ kind: 'resume', accountId }, nowMs);
    } catch (error) {
      this.#changed.add(accountId);
      throw error;
    }
  }
}
