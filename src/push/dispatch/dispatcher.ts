import { setImmediate as nextTurn } from 'node:timers/promises';
import { disabledReason, keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { Log } from '../../base/log.ts';
import { Retry } from '../../base/retry.ts';
import type { AccountEvent, Environment } from '../../domain/account-events.ts';
import type { AppendHealthEvent, HealthVerdict } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { ClaimedDelivery, DeliveryWork, NewDelivery, WebhookHealth } from '../queue/delivery-queue.ts';
import { SerialWork } from '../queue/serial-work.ts';
import { AccountReactions, type Reaction } from './account-reactions.ts';
import { Attempts, type AttemptTerms } from './attempts.ts';
import { HeldAccounts } from './held-accounts.ts';
import { countByLane, LaneSlots } from './lane-slots.ts';
import { ReportBatch, type ReportedDelivery } from './report-batch.ts';
import type { Scheduler } from './scheduler.ts';

/** After this the claims of a killed process are due again. */
const LEASE_MS = 5_000;
/** Deliveries of one commit: a few milliseconds of the event loop. */
const MAX_STORED = 100;
const BACKOFF = { maxMs: 5_000 } as const;

export interface DispatcherOptions extends AttemptTerms {
  readonly queue: DeliveryWork;
  /** Kept up to date by its owner, who calls `accountEvent` with every event, and `directoryMoved`. */
  readonly directory: Pick<Directory, 'account' | 'key' | 'position'>;
  readonly environment: Environment;
  readonly appendHealthEvent: AppendHealthEvent;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Names this process among those that claim. */
  readonly holder: string;
}

/**
 * Makes the attempts of all deliveries that are due, each webhook in a separate lane with a limited number of slots.
 * It sleeps until the next delivery is due, a ramp lets one through, or an account has access again; earlier work
 * notifies it. While the queue's store is unavailable it claims nothing and retries.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #slots = new LaneSlots();
  readonly #reactions = new AccountReactions();
  readonly #held: HeldAccounts;
  readonly #health: HealthWatch;
  readonly #reports: ReportBatch;
  readonly #attempts: Attempts;
  /** One at a time: a claim relies on the slots that it was granted. */
  readonly #claims = new SerialWork();
  readonly #listener = { notify: (): void => this.#wake() };
  #todo: Reaction[] = [];
  /** Claimed deliveries of events that the directory has not reached yet: its keys may be older than they. */
  #ahead: { readonly delivery: ClaimedDelivery; readonly sinceMs: number }[] = [];
  #started = false;
  #working: Promise<void> | undefined;
  #notified = false;
  #cancelTimer: (() => void) | undefined;
  readonly #stopping = new AbortController();
  readonly #retry: Retry;
  readonly #failed = Promise.withResolvers<never>();
  /** Rejects with a fault of the program, after which nothing more is sent; otherwise stays pending. */
  readonly failed = this.#failed.promise;
  readonly #fail = (error: unknown): void => {
    this.#stopping.abort();
    this.#failed.reject(error);
  };

  constructor(options: DispatcherOptions) {
    const { queue, directory, scheduler, log, environment } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // its owner may look at it later
    const waiting = { backoff: BACKOFF, sleep: async (ms: number) => this.#sleep(ms) };
    this.#retry = new Retry({ log, signal: this.#stopping.signal, component: 'dispatcher', ...waiting });
    this.#held = new HeldAccounts({ queue, directory });
    this.#reports = new ReportBatch({
      queue,
      scheduler,
      log,
      onRecorded: (...all) => this.#recorded(...all),
      onFailed: this.#fail,
    });
    this.#health = new HealthWatch({
      append: options.appendHealthEvent,
      log,
      onSwitchOff: (verdict, done) => this.#switchOff(verdict, done),
    });
    this.#attempts = new Attempts({
      terms: options,
      directory,
      environment,
      scheduler,
      log,
      endedSince: (delivery) => this.#endedSince(delivery),
      onEnded: (reported, attempt) => {
        if (attempt !== undefined) this.#slots.ended(reported.delivery.prefix, attempt);
        this.#reports.add(reported);
      },
    });
  }

  /** Starts to claim. The directory must have caught up. */
  start(): void {
    const { queue, directory, environment } = this.#options;
    this.#started = true;
    queue.changed.add(this.#listener);
    for (const [prefix, { reason }] of this.#reactions.ends()) {
      const key = directory.key(prefix)?.key;
      if (key !== undefined && keyIneligibleReason(key, environment) !== undefined) {
        this.#todo.push({ kind: 'end lane', prefix, reason });
      }
    }
    for (const [prefix, atMs] of this.#reactions.enabled())
      this.#todo.push({ kind: 'enabled', prefix, atMs });
    this.#wake();
  }

  /**
   * Stores new deliveries durably and starts attempts for those with a free slot. Rejects as the queue does; then
   * some may be stored, and storing them again changes nothing.
   */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += MAX_STORED) {
      if (from > 0) await nextTurn();
      await this.#store(deliveries.slice(from, from + MAX_STORED));
    }
    this.#wake();
  }

  /** To be called with every account event, history included, in the order of the log. */
  accountEvent(event: AccountEvent, place: AccountEventPlace): void {
    const reaction = this.#reactions.seen(event, place);
    if (reaction === undefined || !this.#started) return;
    this.#todo.push(reaction);
    this.#wake();
  }

  /** To be called when the directory's position has changed. */
  directoryMoved(): void {
    if (this.#ahead.length === 0) return;
    const ahead = this.#ahead;
    this.#ahead = [];
    const nowMs = this.#options.scheduler.now();
    for (const { delivery, sinceMs } of ahead) {
      if (nowMs - sinceMs < LEASE_MS / 2) this.#attempt(delivery, sinceMs);
      else this.#slots.ended(delivery.prefix); // it is due again when its lease ends
    }
  }

  /** Starts no further attempt; resolves when those under way are recorded and the other claims given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#listener);
    this.#cancelTimer?.();
    await this.#working;
    await this.#claims.whenIdle();
    for (const { delivery } of this.#ahead) this.#attempts.giveBack(delivery);
    await this.#attempts.whenIdle();
    await this.#reports.close();
    await this.#health.whenIdle();
  }

  #wake(): void {
    this.#notified = true;
    if (this.#working !== undefined || !this.#started || this.#stopping.signal.aborted) return;
    this.#working = Promise.resolve()
      .then(() => this.#work())
      .finally(() => {
        this.#working = undefined;
        if (this.#notified) this.#wake();
      });
  }

  async #work(): Promise<void> {
    const { scheduler } = this.#options;
    try {
      while (this.#notified && !this.#stopping.signal.aborted) {
        this.#notified = false;
        await this.#react();
        await this.#held.resume(scheduler.now());
        const nextMs = Math.min(await this.#claimDue(), this.#held.nextAtMs());
        this.#sleep(Math.max(0, nextMs - scheduler.now()));
        this.#retry.succeeded();
      }
    } catch (error) {
      this.#notified = false;
      await this.#retry.waitAfter(error).catch(this.#fail);
    }
  }

  /** Reacts to account events in their order; a reaction that fails stays first. */
  async #react(): Promise<void> {
    const { queue, scheduler } = this.#options;
    for (let next = this.#todo[0]; next !== undefined; next = this.#todo[0]) {
      if (next.kind === 'end lane') await queue.endLane(next.prefix, next.reason, scheduler.now());
      if (next.kind === 'enabled') await this.#enabled(next.prefix, next.atMs);
      if (next.kind === 'access') this.#held.changed(next.accountId);
      this.#todo.shift();
      if (next.kind === 'end lane') this.#slots.setBlocked(next.prefix, false);
    }
  }

  /** Several processes see the event, some of them late: only a failure streak from before it is reset. */
  async #enabled(prefix: string, atMs: number): Promise<void> {
    await this.#options.queue.resetHealth(prefix, atMs);
    this.#health.recovered(prefix);
    this.#slots.ramps.start(prefix, atMs);
  }

  /**
   * Claims until nothing more is due that has a free slot; returns when something will be. Full lanes are left out: they
   * continue when one of their attempts ends.
   */
  async #claimDue(): Promise<number> {
    const { queue, holder, scheduler } = this.#options;
    for (;;) {
      const nowMs = scheduler.now();
      const dueAtMs = (await queue.nextDueAtMs()) ?? Infinity;
      const rampAtMs = this.#slots.ramps.nextAtMs(nowMs) ?? Infinity;
      if (dueAtMs > nowMs || this.#stopping.signal.aborted) return Math.min(dueAtMs, rampAtMs);
      const claimed = await this.#claims.run(async () => {
        const grant = this.#slots.grant(nowMs);
        if (grant.limit <= 0) return 0;
        const deliveries = await queue.claim({ nowMs, holder, leaseMs: LEASE_MS, ...grant });
        this.#start(deliveries);
        return deliveries.length;
      });
      if (claimed === 0) return Math.min((await queue.nextDueAtMs(nowMs)) ?? Infinity, rampAtMs);
      await nextTurn(); // claims are synchronous work: let answers in
    }
  }

  #sleep(delayMs: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.scheduler.setTimer(delayMs, () => this.#wake());
  }

  async #store(deliveries: readonly NewDelivery[]): Promise<void> {
    const { queue, holder, scheduler } = this.#options;
    await this.#claims.run(async () => {
      const nowMs = scheduler.now();
      const { laneCapacity } = this.#slots.grant(nowMs, countByLane(deliveries));
      const claiming = this.#started && !this.#stopping.signal.aborted;
      const claimFor = claiming ? { nowMs, holder, leaseMs: LEASE_MS, laneCapacity } : undefined;
      this.#start(await queue.enqueue(deliveries, claimFor));
    });
  }

  #start(deliveries: readonly ClaimedDelivery[]): void {
    const nowMs = this.#options.scheduler.now();
    for (const { prefix } of deliveries) this.#slots.started(prefix, nowMs);
    for (const delivery of deliveries) this.#attempt(delivery, nowMs);
  }

  #attempt(delivery: ClaimedDelivery, sinceMs: number): void {
    if (this.#stopping.signal.aborted) this.#attempts.giveBack(delivery);
    else if (this.#options.directory.position < delivery.position) this.#ahead.push({ delivery, sinceMs });
    else this.#attempts.start(delivery);
  }

  /** A redelivery was requested after what ended the first cycle. */
  #endedSince({ prefix, position, cycle }: ClaimedDelivery): string | undefined {
    return cycle > 1 ? undefined : this.#reactions.endedSince(prefix, position);
  }

  #recorded(reported: readonly ReportedDelivery[], health: ReadonlyMap<string, WebhookHealth>): void {
    const failed = new Map<string, number>();
    for (const { delivery, report } of reported) {
      const { prefix, accountId } = delivery;
      if (!('attempt' in report) || report.attempt === null) this.#slots.ended(prefix);
      else if (report.kind === 'failed') failed.set(prefix, accountId);
      if (report.kind === 'held') this.#held.changed(accountId);
    }
    for (const [prefix, lane] of health) {
      const accountId = failed.get(prefix);
      if (lane.failedInARow === 0) this.#health.recovered(prefix);
      else if (accountId !== undefined)
        this.#health.failed({ prefix, accountId }, lane, this.#options.scheduler.now());
    }
    this.#wake();
  }

  /** Blocks the webhook until its lane is ended, here or when the event comes back from the log. */
  #switchOff({ prefix, judgement }: HealthVerdict, done: 'started' | 'recorded' | 'failed'): void {
    this.#slots.setBlocked(prefix, done !== 'failed');
    if (done === 'recorded' && judgement.kind === 'switch off') {
      this.#todo.push({ kind: 'end lane', prefix, reason: disabledReason(judgement.reason) });
    }
    this.#wake();
  }
}
