import { deliveryEffect } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import { accessOf } from '../../domain/account.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { DeliveryQueue, QueueChange } from '../queue/delivery-queue.ts';

/** How often it looks for deliveries that another process has held before it died, or that a wrong clock has kept on hold. */
const LOOK_EVERY_MS = 60_000;

type Ending = Extract<QueueChange, { readonly kind: 'end lane' }>;
type Enabling = Extract<QueueChange, { readonly kind: 'enabled' }>;
/** How an account's event changes the lane of a webhook. */
type LaneChange = Ending | Enabling;

interface AccountWorkOptions {
  readonly queue: Pick<DeliveryQueue, 'change' | 'heldAccounts'>;
  readonly directory: Pick<Directory, 'account'>;
}

/**
 * The work in the queue that accounts cause. Their events end deliveries, or enable webhooks. Deliveries of accounts
 * without access are held, and resumed when an event or the beginning of a charging profile gives access again.
 */
export class AccountWork {
  readonly #options: AccountWorkOptions;
  /** The last change of each kind in each webhook's lane. */
  readonly #ends = new Map<string, Ending>();
  readonly #enablings = new Map<string, Enabling>();
  #isStarted = false;
  /** The changes to make, in the order of their events. */
  readonly #changes: LaneChange[] = [];
  /** The accounts whose access may have changed. */
  readonly #accounts = new Set<number>();
  /** When a charging profile gives access to an account with held deliveries. */
  readonly #opensAtMs = new Map<number, number>();
  #lookAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AccountWorkOptions) {
    this.#options = options;
  }

  /** Begins with the changes of `atStart`. */
  start(isOff: (prefix: string) => boolean): void {
    this.#isStarted = true;
    for (const change of this.atStart(isOff)) this.#changes.push(change);
  }

  /**
   * Changes by events from before the start, since it is not known whether another process has completed them. `isOff` says
   * whether a webhook takes no deliveries.
   */
  *atStart(isOff: (prefix: string) => boolean): Iterable<LaneChange> {
    // If the webhook is on again, its redelivered deliveries may be newer than the end.
    for (const [prefix, end] of this.#ends) yield { ...end, ...(!isOff(prefix) && { redelivered: false }) };
    yield* this.#enablings.values();
  }

  /** Must be called with every account event, including the history. Returns whether it causes work. */
  seen(event: AccountEvent, place: AccountEventPlace): boolean {
    const change = laneChange(event, place);
    if (change?.kind === 'end lane') this.#ends.set(change.prefix, change);
    if (change?.kind === 'enabled') this.#enablings.set(change.prefix, change);
    if (!this.#isStarted) return false;
    if (change !== undefined) this.#changes.push(change);
    const isAccess = event.type === 'IntegrationEnabled' || event.type === 'ChargingProfileSet';
    if (isAccess) this.checkAccess(event.data.account_id);
    return change !== undefined || isAccess;
  }

  /** Why a delivery of an event at this position ends; `undefined` if no later event ends it. */
  endedSince(prefix: string, position: number): string | undefined {
    const { before = 0, reason } = this.#ends.get(prefix) ?? {};
    return before > position ? reason : undefined;
  }

  /** Notes that deliveries of the account were held, or that its access may have changed. */
  checkAccess(accountId: number): void {
    this.#accounts.add(accountId);
  }

  /** When `run` has to be called next. */
  nextAtMs(): number {
    let nextMs = this.#lookAtMs;
    for (const opensAtMs of this.#opensAtMs.values()) nextMs = Math.min(nextMs, opensAtMs);
    return nextMs;
  }

  /**
   * Changes lanes in the order of the events, and then makes the held deliveries of accounts with access due. Rejects as the
   * queue does; then the next call does the rest.
   */
  async run(nowMs: number): Promise<void> {
    const { queue } = this.#options;
    for (let next = this.#changes[0]; next !== undefined; next = this.#changes[0]) {
      await queue.change(next, nowMs);
      this.#changes.shift();
    }
    if (nowMs >= this.#lookAtMs || nowMs < this.#lookAtMs - LOOK_EVERY_MS) {
      for (const accountId of await queue.heldAccounts()) this.#accounts.add(accountId);
      this.#lookAtMs = nowMs + LOOK_EVERY_MS;
    }
    for (const [accountId, opensAtMs] of this.#opensAtMs)
      if (opensAtMs <= nowMs) this.#accounts.add(accountId);
    for (const accountId of [...this.#accounts]) await this.#checkAccount(accountId, nowMs);
  }

  async #checkAccount(accountId: number, nowMs: number): Promise<void> {
    const { queue, directory } = this.#options;
    const access = accessOf(directory.account(accountId)?.account, nowMs);
    this.#accounts.delete(accountId); // first, so that an account that is held meanwhile is checked again
    try {
      if (access.open) await queue.change({ kind: 'resume', accountId }, nowMs);
    } catch (error) {
      this.#accounts.add(accountId);
      throw error;
    }
    if (access.open || access.opensAtMs === undefined) this.#opensAtMs.delete(accountId);
    else this.#opensAtMs.set(accountId, access.opensAtMs);
  }
}

function laneChange(event: AccountEvent, { position, atMs }: AccountEventPlace): LaneChange | undefined {
  const effect = deliveryEffect(event);
  if (effect === undefined) return undefined;
  const { prefix } = effect;
  if (effect.kind === 'enabled') return { kind: 'enabled', prefix, atMs };
  return { kind: 'end lane', prefix, reason: effect.reason, before: position };
}
