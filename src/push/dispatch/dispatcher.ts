import { deliveryEffect, keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { Clock } from '../../base/clock.ts';
import { Retry } from '../../base/retry.ts';
import { SerialWork } from '../../base/serial-work.ts';
import { world } from '../../base/world.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { traceDelivery } from '../delivery-spans.ts';
import type { AppendHealthEvent } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { HostOwners } from '../pace/host-owners.ts';
import { type Choice, Pace, type Slot, type Wanted } from '../pace/pace.ts';
import type { ClaimedDelivery, DeliveryReport, NewDelivery, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryQueue, LaneHead } from '../queue/delivery-queue.ts';
import { AccountWork } from './account-work.ts';
import { type AttemptTerms, attempt, type Judged, judge, released } from './attempt.ts';
import { LEASE_MS, Lease } from './lease.ts';
import { ReportBatch } from './report-batch.ts';

/** New deliveries in one commit, which takes a few milliseconds of the event loop. */
const MAX_STORED = 100;
/** How often the queue is looked at for later due times while lanes wait for their receivers: many may be of these lanes. */
const LOOK_EVERY_MS = 100;

interface DispatcherOptions extends AttemptTerms {
  readonly queue: Pick<
    DeliveryQueue,
    'changed' | 'enqueue' | 'heads' | 'lease' | 'report' | 'change' | 'heldAccounts'
  >;
  /** Its owner keeps it up to date, and calls `accountEvent` with every event. */
  readonly directory: Pick<Directory, 'account' | 'key' | 'position'>;
  /** Resolves when the directory has reached a position, or after a moment. */
  readonly directoryAt: (position: Position) => Promise<void>;
  readonly appendHealthEvent: AppendHealthEvent;
  /** The longest time that an attempt may have to wait. */
  readonly longestWaitMs: number;
  /** The name of this process in its claims. */
  readonly holder: string;
  readonly owners: Pick<HostOwners, 'look' | 'owns'>;
  readonly steady: Clock;
}

/**
 * Makes the attempts of all due deliveries, each webhook in its own lane, at the pace of its receiver: the queue tells which
 * lanes have something due, the pace chooses how much of it may start, the queue leases that, it is sent, and its outcome is
 * recorded. It sleeps until the next delivery is due, the pace allows another one, or an account has access again, unless it is
 * notified of earlier work. While the queue's store is unavailable it leases nothing and retries.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #pace: Pace;
  readonly #accounts: AccountWork;
  readonly #health: HealthWatch;
  readonly #reports: ReportBatch;
  /** A choice and its lease, one after the other: each choice relies on what the one before has started. */
  readonly #leasing = new SerialWork();
  /** The lanes that had to wait at the last look. New deliveries take no room of theirs. */
  #waiting: readonly Wanted[] = [];
  /** The work of leased deliveries, until their outcomes are recorded and judged. */
  readonly #deliveries = new Set<Promise<void>>();
  /** The part of it after which a report is made. */
  readonly #unreported = new Set<Promise<unknown>>();
  readonly #listener = { notify: (): void => this.#wake() };
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
    const { queue, directory, clock, log, steady, appendHealthEvent: append } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // the owner may look at it later
    const sleep = async (ms: number) => this.#sleep(ms);
    const { signal } = this.#stopping;
    this.#retry = new Retry({ log, signal, component: 'dispatcher', backoff: { maxMs: 5_000 }, sleep });
    this.#accounts = new AccountWork({ queue, directory });
    this.#reports = new ReportBatch({ queue, clock, steady, log });
    this.#pace = new Pace(options);
    this.#health = new HealthWatch({ append, log });
  }

  /** Starts sending. The directory must have caught up. */
  start(): void {
    const { queue, directory, environment } = this.#options;
    this.#started = true;
    queue.changed.add(this.#listener);
    const isOff = (prefix: string): boolean => {
      const key = directory.key(prefix)?.key;
      return key !== undefined && keyIneligibleReason(key, environment) !== undefined;
    };
    this.#accounts.start(isOff);
    this.#wake();
  }

  /**
   * Stores new deliveries durably, and sends those that the pace has room for under a lease of the same commit. Rejects as the
   * queue does; then some may be stored, and the call can be repeated.
   */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += MAX_STORED) {
      if (from > 0) await world.nextTurn();
      await this.#options.owners.look();
      const some = deliveries.slice(from, from + MAX_STORED);
      await this.#leasing.run(() => this.#store(some));
    }
    this.#wake();
  }

  /** Must be called with every account event, including the history, in the order of the log and after the directory. */
  accountEvent(event: AccountEvent, place: AccountEventPlace): void {
    const { clock, steady } = this.#options;
    const effect = deliveryEffect(event);
    if (effect !== undefined) this.#health.decided(effect.prefix);
    if (effect?.kind === 'enabled')
      this.#pace.enabled(effect.prefix, Math.max(0, clock.now() - place.atMs), steady.now());
    if (this.#accounts.seen(event, place)) this.#wake();
  }

  /** Starts no further attempt. Resolves when those under way are recorded, and the other leases are given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#listener);
    this.#cancelTimer?.();
    await this.#working;
    await this.#leasing.whenIdle();
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
    const { clock } = this.#options;
    try {
      while (this.#notified && !this.#stopping.signal.aborted) {
        this.#notified = false;
        await this.#accounts.run(clock.now());
        const nextAtMs = Math.min(await this.#sendDue(), this.#accounts.nextAtMs());
        this.#sleep(nextAtMs - clock.now());
        this.#retry.succeeded();
      }
    } catch (error) {
      this.#notified = false;
      await this.#retry.waitAfter(error).catch(this.#fail);
    }
  }

  #sleep(delayMs: number): void {
    this.#cancelTimer?.();
    if (this.#stopping.signal.aborted) return; // a timer would keep the thread from ending
    this.#cancelTimer = this.#options.clock.setTimer(Math.max(0, Math.ceil(delayMs)), () => this.#wake());
  }

  /**
   * Sends what is due until nothing more may start. Returns when to look again. Lanes that have to wait for their receivers
   * continue when one of their attempts ends, or when the pace says so.
   */
  async #sendDue(): Promise<number> {
    const { queue, owners, clock, longestWaitMs, metrics } = this.#options;
    for (;;) {
      await owners.look();
      if (!this.#mayLease || this.#pace.isFull) return Infinity;
      const heads = await queue.heads({ nowMs: clock.now(), leaseMs: LEASE_MS, longestWaitMs });
      const { chosen, waiting, waitMs } = await this.#leasing.run(() => this.#lease(heads.lanes));
      if (chosen.size === 0) {
        metrics.waitingLanes(waiting.length);
        const soonestMs = waiting.length === 0 ? 0 : clock.now() + LOOK_EVERY_MS;
        return Math.min(Math.max(heads.nextAtMs ?? Infinity, soonestMs), clock.now() + waitMs);
      }
      await world.nextTurn(); // choosing is synchronous work, so answers are read in between
    }
  }

  async #lease(lanes: readonly LaneHead[]): Promise<Choice> {
    const { queue, clock, steady, holder } = this.#options;
    const choice = this.#pace.choose(this.#wanted(lanes), steady.now());
    this.#waiting = choice.waiting;
    if (choice.chosen.size === 0 || !this.#mayLease) return { ...choice, chosen: new Map() };
    const lease = new Lease(clock, steady);
    this.#start(await queue.lease(lanes, { ...lease.terms, holder, chosen: choice.chosen }), lease);
    return choice;
  }

  async #store(deliveries: readonly NewDelivery[]): Promise<void> {
    const { queue, clock, steady, holder } = this.#options;
    const lanes = Map.groupBy(deliveries, ({ prefix }) => prefix);
    const wanted = this.#wanted([...lanes].map(([prefix, of]) => ({ prefix, count: of.length })));
    const before = this.#waiting.filter(({ prefix }) => !lanes.has(prefix));
    const { chosen } = this.#pace.choose([...before, ...wanted], steady.now());
    const lease = new Lease(clock, steady);
    const terms = this.#mayLease ? { ...lease.terms, holder, chosen } : undefined;
    this.#start(await queue.enqueue(deliveries, terms), lease);
  }

  /** What lanes want, at the pace that their receivers and the operator permit. One that is being switched off wants nothing. */
  #wanted(lanes: readonly Pick<LaneHead, 'prefix' | 'count'>[]): Wanted[] {
    return lanes.flatMap(({ prefix, count }) => {
      if (this.#health.isSwitchingOff(prefix)) return [];
      const webhook = this.#options.directory.key(prefix)?.key.webhook;
      return [{ prefix, count, url: webhook?.url, perSecond: webhook?.ratePerSecond ?? Infinity }];
    });
  }

  /** While this is false, new deliveries are stored, and nothing is leased. */
  get #mayLease(): boolean {
    return this.#started && !this.#stopping.signal.aborted && !this.#reports.isBehind;
  }

  #start(deliveries: readonly ClaimedDelivery[], lease: Lease): void {
    const { steady } = this.#options;
    const slots = deliveries.map(({ prefix }) => this.#pace.start(prefix, steady.now()));
    for (const [index, delivery] of deliveries.entries()) {
      const work = this.#deliver(delivery, lease, slots[index] as Slot)
        .catch(this.#fail)
        .finally(() => this.#deliveries.delete(work));
      this.#deliveries.add(work);
    }
  }

  /**
   * Handles a leased delivery: judges, sends and reports it, and then judges the health of its webhook. If its lease is no
   * longer fresh when it could be sent, it is given back unsent.
   */
  async #deliver(delivery: ClaimedDelivery, lease: Lease, slot: Slot): Promise<void> {
    const { steady } = this.#options;
    const isAhead = this.#options.directory.position < delivery.position;
    if (isAhead) await this.#beforeStop(this.#directoryReaches(delivery, lease));
    const judged = this.#judge(delivery, lease);
    const made =
      judged.kind === 'send'
        ? await this.#beforeStop(attempt(delivery, judged.request, this.#options, { lease, slot }))
        : undefined;
    if (made !== undefined) this.#pace.end(slot, steady.now(), made); // before the commit, so that a slow one does not delay the lane
    const report = made?.report ?? (judged.kind === 'send' ? released(delivery) : judged);
    const health = await this.#reports.record(report);
    traceDelivery(delivery, report, made);
    if (made === undefined) this.#pace.end(slot, steady.now());
    if (report.kind === 'held') this.#accounts.checkAccess(delivery.accountId);
    const followed = this.#followHealth(delivery, report, health); // at once, so that nothing more is sent to a webhook that will be switched off
    this.#wake();
    await followed;
  }

  /** Waits until the directory has reached the delivery's event, before which its keys may be outdated, or the lease is too old. */
  async #directoryReaches({ position }: ClaimedDelivery, lease: Lease): Promise<void> {
    const { directory, directoryAt } = this.#options;
    while (directory.position < position && lease.isFresh && !this.#stopping.signal.aborted)
      await directoryAt(position);
  }

  /** Makes `stop` wait for the work, and for what its caller does as soon as it ends. */
  #beforeStop<T>(work: Promise<T>): Promise<T> {
    const ended = (): void => void this.#unreported.delete(work);
    this.#unreported.add(work);
    work.then(ended, ended);
    return work;
  }

  #judge(delivery: ClaimedDelivery, lease: Lease): Judged {
    if (this.#stopping.signal.aborted || !lease.isFresh) return released(delivery);
    const { prefix, position, cycle } = delivery;
    // A redelivery was requested after the event that ended the first cycle.
    const ended = cycle > 1 ? undefined : this.#accounts.endedSince(prefix, position);
    return judge(delivery, ended, this.#options);
  }

  /** Judges the webhook's health after a recorded outcome. Nothing more is sent to it from here on if it is switched off. */
  async #followHealth(
    { prefix, accountId }: ClaimedDelivery,
    report: DeliveryReport,
    health: WebhookHealth | undefined,
  ): Promise<void> {
    if (health?.failedInARow === 0) this.#health.recovered(prefix);
    else if (health !== undefined && report.kind === 'failed' && report.attempt !== null) {
      await this.#health.failed({ prefix, accountId }, health, this.#options.clock.now());
      this.#wake(); // the lane may want something again
    }
  }
}
