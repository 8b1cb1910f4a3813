import { disabledReason, keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import { Retry } from '../../base/retry.ts';
import { SerialWork } from '../../base/serial-work.ts';
import { world } from '../../base/world.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { AppendHealthEvent } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { ClaimedDelivery, DeliveryReport, NewDelivery, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryWork } from '../queue/delivery-queue.ts';
import { AccountReactions, type Reaction } from './account-reactions.ts';
import { type AttemptTerms, attempt, type Judged, judge, released } from './attempt.ts';
import { HeldAccounts } from './held-accounts.ts';
import { countByLane, LaneSlots } from './lane-slots.ts';
import { ReportBatch } from './report-batch.ts';

/** After this the claims of a killed process are due again. */
const LEASE_MS = 5_000;
/** Deliveries of one commit: a few milliseconds of the event loop. */
const MAX_STORED = 100;
const BACKOFF = { maxMs: 5_000 } as const;

export interface DispatcherOptions extends AttemptTerms {
  readonly queue: DeliveryWork;
  /** Kept up to date by its owner, who calls `accountEvent` with every event, and `directoryMoved`. */
  readonly directory: Pick<Directory, 'account' | 'key' | 'position'>;
  readonly appendHealthEvent: AppendHealthEvent;
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
  /** One at a time: a claim relies on the slots that it was granted. */
  readonly #claims = new SerialWork();
  readonly #deliveries = new Set<Promise<void>>();
  /** What deliveries wait for before there is something to report of them. */
  readonly #unreported = new Set<Promise<unknown>>();
  readonly #listener = { notify: (): void => this.#wake() };
  #todo: Reaction[] = [];
  #directoryMoves = Promise.withResolvers<void>();
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
    const { queue, directory, scheduler, log, appendHealthEvent: append } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // its owner may look at it later
    const waiting = { backoff: BACKOFF, sleep: async (ms: number) => this.#sleep(ms) };
    this.#retry = new Retry({ log, signal: this.#stopping.signal, component: 'dispatcher', ...waiting });
    this.#held = new HeldAccounts({ queue, directory });
    this.#reports = new ReportBatch({ queue, scheduler, log });
    this.#health = new HealthWatch({ append, log, lanes: this.#slots });
  }

  /** Starts to claim. The directory must have caught up. */
  start(): void {
    const { queue, directory, environment } = this.#options;
    this.#started = true;
    queue.changed.add(this.#listener);
    const isOff = (prefix: string): boolean => {
      const key = directory.key(prefix)?.key;
      return key !== undefined && keyIneligibleReason(key, environment) !== undefined;
    };
    for (const reaction of this.#reactions.atStart(isOff)) this.#todo.push(reaction);
    this.#wake();
  }

  /**
   * Stores new deliveries durably and starts attempts for those with a free slot. Rejects as the queue does; then
   * some may be stored, and storing them again changes nothing.
   */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += MAX_STORED) {
      if (from > 0) await world.nextTurn();
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
    this.#directoryMoves.resolve();
    this.#directoryMoves = Promise.withResolvers();
  }

  /** Starts no further attempt; resolves when those under way are recorded and the other claims given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#listener);
    this.#cancelTimer?.();
    await this.#working;
    await this.#claims.whenIdle();
    this.#directoryMoves.resolve();
    await Promise.all(this.#unreported);
    await this.#reports.close();
    await Promise.all(this.#deliveries);
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
      if (next.kind === 'end lane')
        await queue.endLane(next.prefix, next.reason, scheduler.now(), next.which);
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
      await world.nextTurn(); // claims are synchronous work: let answers in
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
    for (const delivery of deliveries) {
      const work = this.#deliver(delivery, nowMs)
        .catch(this.#fail)
        .finally(() => this.#deliveries.delete(work));
      this.#deliveries.add(work);
    }
  }

  /** All that happens to a claimed delivery: it is judged, sent and reported, and its webhook's health follows. */
  async #deliver(delivery: ClaimedDelivery, claimedAtMs: number): Promise<void> {
    const { prefix } = delivery;
    const isAhead = this.#options.directory.position < delivery.position;
    if (isAhead && !(await this.#beforeStop(this.#directoryReaches(delivery, claimedAtMs)))) {
      this.#slots.ended(prefix); // it is due again when its lease ends
      return;
    }
    const judged = this.#judge(delivery);
    let report: DeliveryReport;
    if (judged.kind === 'send') {
      const made = await this.#beforeStop(attempt(delivery, judged.request, this.#options));
      report = made.report;
      this.#slots.ended(prefix, made.result); // before the commit: a slow one delays no lane
    } else report = judged;
    const health = await this.#reports.record(report);
    if (judged.kind !== 'send') this.#slots.ended(prefix);
    if (report.kind === 'held') this.#held.changed(delivery.accountId);
    const followed = this.#followHealth(delivery, report, health); // blocks a lane at once that is to be switched off
    this.#wake();
    await followed;
  }

  /** Its keys may be older than an event that it has not reached. False where the claim is too old by then. */
  async #directoryReaches({ position }: ClaimedDelivery, claimedAtMs: number): Promise<boolean> {
    const { directory, scheduler } = this.#options;
    while (directory.position < position && !this.#stopping.signal.aborted) {
      await this.#directoryMoves.promise;
      const isOld = scheduler.now() - claimedAtMs >= LEASE_MS / 2;
      if (isOld && !this.#stopping.signal.aborted) return false;
    }
    return true;
  }

  /** Stopping waits for it, and for what its caller does as soon as it ends. */
  #beforeStop<T>(work: Promise<T>): Promise<T> {
    const ended = (): void => void this.#unreported.delete(work);
    this.#unreported.add(work);
    work.then(ended, ended);
    return work;
  }

  #judge(delivery: ClaimedDelivery): Judged {
    if (this.#stopping.signal.aborted) return released(delivery);
    const { prefix, position, cycle } = delivery;
    // A redelivery was requested after what ended the first cycle.
    const ended = cycle > 1 ? undefined : this.#reactions.endedSince(prefix, position);
    return judge(delivery, ended, this.#options);
  }

  /** Lets the webhook's health follow a recorded outcome. A webhook is blocked from here until it is switched off. */
  async #followHealth(
    { prefix, accountId }: ClaimedDelivery,
    report: DeliveryReport,
    health: WebhookHealth | undefined,
  ): Promise<void> {
    if (health?.failedInARow === 0) this.#health.recovered(prefix);
    else if (health !== undefined && report.kind === 'failed' && report.attempt !== null) {
      const off = await this.#health.failed({ prefix, accountId }, health, this.#options.scheduler.now());
      const which = { before: this.#options.directory.position + 1 }; // its event ends what comes until then
      if (off !== undefined)
        this.#todo.push({ kind: 'end lane', prefix, reason: disabledReason(off), which });
      this.#wake(); // the lane is ended now, or no longer blocked
    }
  }
}
