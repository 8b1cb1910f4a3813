import { setImmediate as nextTurn } from 'node:timers/promises';
import { keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../../projections/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { AccountEvent, Environment } from '../../domain/account-events.ts';
import type { Log } from '../../log.ts';
import { Retry } from '../../retry.ts';
import type { AppendHealthEvent, HealthVerdict } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { ClaimedDelivery, DeliveryQueue, NewDelivery, WebhookHealth } from '../queue/delivery-queue.ts';
import { SerialWork } from '../queue/serial-work.ts';
import { AccountReactions, disabledReason, type Reaction } from './account-reactions.ts';
import { Attempts, type AttemptTerms } from './attempts.ts';
import { HeldAccounts } from './held-accounts.ts';
import { countByLane, LaneSlots } from './lane-slots.ts';
import { ReportBatch, type ReportedDelivery } from './report-batch.ts';
import type { Scheduler } from './scheduler.ts';

/** What a killed process had claimed is due again after this. */
const LEASE_MS = 5_000;
/** Deliveries of one commit: a few milliseconds of the event loop. */
const MAX_STORED = 100;
const BACKOFF = { maxMs: 5_000 } as const;

export interface DispatcherOptions extends AttemptTerms {
  readonly queue: DeliveryQueue;
  /** Kept up with the log by its owner, who passes every event on to `accountEvent` and calls `directoryMoved`. */
  readonly directory: Pick<Directory, 'account' | 'key' | 'position'>;
  readonly environment: Environment;
  readonly appendHealthEvent: AppendHealthEvent;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Names this process among those that claim. */
  readonly holder: string;
  /** See `ReportBatchOptions`. */
  readonly togetherMs?: number | undefined;
}

/**
 * Makes the attempts of all deliveries that are due, each webhook in a lane of its own with a bounded number of
 * slots. It sleeps until the next delivery is due, a ramp lets one through, or access returns; whatever brings
 * work earlier rings. While the queue's store is unavailable it claims nothing and tries again.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #slots = new LaneSlots();
  readonly #reactions = new AccountReactions();
  readonly #held: HeldAccounts;
  readonly #health: HealthWatch;
  readonly #reports: ReportBatch;
  readonly #attempts: Attempts;
  /** One at a time: a claim counts on the slots that it was granted. */
  readonly #claims = new SerialWork();
  readonly #ringer = { notify: (): void => this.#wake() };
  #todo: Reaction[] = [];
  /** Claimed deliveries of events that the directory has not reached: what it says of their keys may be older. */
  #ahead: { readonly delivery: ClaimedDelivery; readonly sinceMs: number }[] = [];
  #started = false;
  #working: Promise<void> | undefined;
  #notified = false;
  #cancelTimer: (() => void) | undefined;
  readonly #stopping = new AbortController();
  readonly #retry: Retry;
  readonly #failed = Promise.withResolvers<never>();
  /** Rejects with a fault of the program, after which nothing more is sent; pending while it works. */
  readonly failed = this.#failed.promise;
  readonly #fail = (error: unknown): void => {
    this.#stopping.abort();
    this.#failed.reject(error);
  };

  constructor(options: DispatcherOptions) {
    const { queue, directory, scheduler, log, environment } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // for whoever asks, which may be later
    const waiting = { backoff: BACKOFF, sleep: async (ms: number) => this.#sleep(ms) };
    this.#retry = new Retry({ log, signal: this.#stopping.signal, component: 'dispatcher', ...waiting });
    this.#held = new HeldAccounts({ queue, directory });
    this.#reports = new ReportBatch({
      queue,
      scheduler,
      log,
      togetherMs: options.togetherMs,
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

  /** Begins to claim. The directory must have caught up. */
  start(): void {
    const { queue, directory, environment } = this.#options;
    this.#started = true;
    queue.changed.add(this.#ringer);
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
   * Stores new deliveries durably and begins with those that find a free slot. Rejects with what the queue
   * rejects with; then some may be stored, and storing them again changes nothing.
   */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += MAX_STORED) {
      if (from > 0) await nextTurn();
      await this.#store(deliveries.slice(from, from + MAX_STORED));
    }
    this.#wake();
  }

  /** Takes note of an account's event; every one, history included, in the order of the log. */
  accountEvent(event: AccountEvent, place: AccountEventPlace): void {
    const reaction = this.#reactions.seen(event, place);
    if (reaction === undefined || !this.#started) return;
    this.#todo.push(reaction);
    this.#wake();
  }

  /** The directory's position is another one. */
  directoryMoved(): void {
    if (this.#ahead.length === 0) return;
    const ahead = this.#ahead;
    this.#ahead = [];
    const nowMs = this.#options.scheduler.now();
    for (const { delivery, sinceMs } of ahead) {
      if (nowMs - sinceMs < LEASE_MS / 2) this.#attempt(delivery, sinceMs);
      else this.#slots.ended(delivery.prefix); // it falls due again by itself when its lease ends
    }
  }

  /** Begins no further attempt; resolves when those under way are recorded and the rest is given back. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#ringer);
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
        await this.#sleepAfter(await this.#claimDue());
        this.#retry.succeeded();
      }
    } catch (error) {
      this.#notified = false;
      await this.#retry.waitAfter(error).catch(this.#fail);
    }
  }

  /** Carries out what account events call for, in their order; what fails stays first. */
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

  /** Several processes see the event, and some of them late: only a run from before it is forgotten. */
  async #enabled(prefix: string, atMs: number): Promise<void> {
    const { failedInARow, failingSinceMs } = await this.#options.queue.health(prefix);
    const isOlder = failingSinceMs === null || failingSinceMs < atMs;
    if (failedInARow > 0 && isOlder) await this.#options.queue.resetHealth(prefix);
    this.#health.recovered(prefix);
    this.#slots.ramps.start(prefix, atMs);
  }

  /** Claims until nothing is due that finds a slot; returns the time by which that was judged. */
  async #claimDue(): Promise<number> {
    const { queue, holder, scheduler } = this.#options;
    for (;;) {
      const nowMs = scheduler.now();
      const dueAtMs = await queue.nextDueAtMs();
      if (dueAtMs === undefined || dueAtMs > nowMs || this.#stopping.signal.aborted) return nowMs;
      const claimed = await this.#claims.run(async () => {
        const grant = this.#slots.grant(nowMs);
        if (grant.limit <= 0) return 0;
        const deliveries = await queue.claim({ nowMs, holder, leaseMs: LEASE_MS, ...grant });
        this.#begin(deliveries);
        return deliveries.length;
      });
      if (claimed === 0) return nowMs;
      await nextTurn(); // claims are synchronous work: let answers in
    }
  }

  /** Full lanes are left out: they are served when one of their own attempts ends. */
  async #sleepAfter(judgedAtMs: number): Promise<void> {
    const dueAtMs = (await this.#options.queue.nextDueAtMs(judgedAtMs)) ?? Infinity;
    const rampAtMs = this.#slots.ramps.nextAtMs(judgedAtMs) ?? Infinity;
    const nextMs = Math.min(dueAtMs, rampAtMs, this.#held.nextAtMs());
    this.#sleep(Math.max(0, nextMs - this.#options.scheduler.now()));
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
      this.#begin(await queue.enqueue(deliveries, claimFor));
    });
  }

  #begin(deliveries: readonly ClaimedDelivery[]): void {
    const nowMs = this.#options.scheduler.now();
    for (const { prefix } of deliveries) this.#slots.started(prefix, nowMs);
    for (const delivery of deliveries) this.#attempt(delivery, nowMs);
  }

  #attempt(delivery: ClaimedDelivery, sinceMs: number): void {
    if (this.#stopping.signal.aborted) this.#attempts.giveBack(delivery);
    else if (this.#options.directory.position < delivery.position) this.#ahead.push({ delivery, sinceMs });
    else this.#attempts.begin(delivery);
  }

  /** A redelivery was asked for after whatever ended the first cycle. */
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

  /** Nothing more begins for the webhook until its lane is ended, here or by the event when it comes back. */
  #switchOff({ prefix, judgement }: HealthVerdict, done: 'begun' | 'recorded' | 'failed'): void {
    this.#slots.setBlocked(prefix, done !== 'failed');
    if (done === 'recorded' && judgement.kind === 'switch off') {
      this.#todo.push({ kind: 'end lane', prefix, reason: disabledReason(judgement.reason) });
    }
    this.#wake();
  }
}
