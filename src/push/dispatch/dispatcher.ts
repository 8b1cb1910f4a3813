import type { StoredKey } from '../../accounts/rows/read-rows.ts';
import type { Clock } from '../../base/clock.ts';
import { Retry } from '../../base/retry.ts';
import { SerialWork } from '../../base/serial-work.ts';
import { world } from '../../base/world.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Tables } from '../../tables/tables.ts';
import { traceDelivery } from '../delivery-spans.ts';
import type { AppendHealthEvent } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { HostOwners } from '../pace/host-owners.ts';
import { type Choice, Pace, type Slot, type Wanted } from '../pace/pace.ts';
import type { ClaimedDelivery, DeliveryReport, NewDelivery, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryQueue, LaneHead } from '../queue/delivery-queue.ts';
import { type AttemptTerms, attempt, judge, released } from './attempt.ts';
import { LaneRows } from './lane-rows.ts';
import { LEASE_MS, Lease } from './lease.ts';
import { ReportBatch } from './report-batch.ts';

/** New deliveries in one commit, which takes a few milliseconds of the event loop. */
const MAX_STORED = 100;
/** How often the queue is looked at for later due times while lanes wait for their receivers: many may be of these lanes. */
const LOOK_EVERY_MS = 100;

/** A leased delivery's way to its attempt. */
interface Started {
  readonly lease: Lease;
  readonly slot: Slot;
  /** The keys of the deliveries that were leased with it. */
  readonly keys: Promise<ReadonlyMap<string, StoredKey>>;
}

interface DispatcherOptions extends AttemptTerms {
  readonly queue: Pick<DeliveryQueue, 'changed' | 'enqueue' | 'heads' | 'lease' | 'report' | 'change'>;
  /** The rows of accounts. */
  readonly rows: Pick<Tables, 'get' | 'find' | 'changed'>;
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
  readonly #lanes: LaneRows;
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
  readonly #ofRows = { notify: (): void => void this.#beforeStop(this.#rowsChanged()) };
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
    const { queue, clock, log, steady, appendHealthEvent: append } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // the owner may look at it later
    const sleep = async (ms: number) => this.#sleep(ms);
    const { signal } = this.#stopping;
    this.#retry = new Retry({ log, signal, component: 'dispatcher', backoff: { maxMs: 5_000 }, sleep });
    this.#lanes = new LaneRows(options);
    this.#reports = new ReportBatch({ queue, clock, steady, log });
    this.#pace = new Pace(options);
    this.#health = new HealthWatch({ append, log });
  }

  /** Starts sending. */
  start(): void {
    const { queue, rows } = this.#options;
    this.#started = true;
    queue.changed.add(this.#listener);
    rows.changed.add(this.#ofRows);
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

  /** Starts no further attempt. Resolves when those under way are recorded, and the other leases are given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#listener);
    this.#options.rows.changed.remove(this.#ofRows);
    this.#cancelTimer?.();
    await this.#working;
    await this.#leasing.whenIdle();
    await Promise.all(this.#unreported);
    await this.#reports.close();
    await Promise.all(this.#deliveries);
  }

  async #rowsChanged(): Promise<void> {
    if (await this.#lanes.changed().catch(this.#fail)) this.#wake();
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
        this.#sleep((await this.#sendDue()) - clock.now());
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
      const prefixes = heads.lanes.map(({ prefix }) => prefix);
      await this.#lanes.look(prefixes);
      await this.#lanes.endOff(prefixes);
      const { chosen, waiting, waitMs } = await this.#leasing.run(() => this.#lease(heads.lanes));
      if (chosen.size === 0) {
        metrics.waitingLanes(waiting.length);
        const soonestMs = waiting.length === 0 ? 0 : clock.now() + LOOK_EVERY_MS;
        const nextAtMs = Math.min(heads.nextAtMs ?? Infinity, this.#lanes.nextAtMs(prefixes));
        return Math.min(Math.max(nextAtMs, soonestMs), clock.now() + waitMs);
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
    await this.#lanes.look([...lanes.keys()]);
    const wanted = this.#wanted([...lanes].map(([prefix, of]) => ({ prefix, count: of.length })));
    const before = this.#waiting.filter(({ prefix }) => !lanes.has(prefix));
    const { chosen } = this.#pace.choose([...before, ...wanted], steady.now());
    const lease = new Lease(clock, steady);
    const terms = this.#mayLease ? { ...lease.terms, holder, chosen } : undefined;
    this.#start(await queue.enqueue(deliveries, terms), lease);
    await this.#lanes.stored(deliveries);
  }

  /** Returns the attempts that open lanes want at the operator's rate. A lane that is being switched off wants none. */
  #wanted(lanes: readonly Pick<LaneHead, 'prefix' | 'count'>[]): Wanted[] {
    const { clock, steady } = this.#options;
    return lanes.flatMap(({ prefix, count }) => {
      const lane = this.#lanes.of(prefix);
      if (lane?.kind !== 'open') return [];
      const { url, perSecond, enabledAtMs, endedAt } = lane;
      if (this.#health.isSwitchingOff({ prefix, endedAt })) {
        this.#lanes.close(prefix);
        return [];
      }
      if (enabledAtMs !== undefined)
        this.#pace.enabled(prefix, enabledAtMs, { agoMs: clock.now() - enabledAtMs, nowMs: steady.now() });
      return [{ prefix, count, url, perSecond }];
    });
  }

  /** While this is false, new deliveries are stored, and nothing is leased. */
  get #mayLease(): boolean {
    return this.#started && !this.#stopping.signal.aborted && !this.#reports.isBehind;
  }

  /** Starts attempts, each judged by its key as it is read now. */
  #start(deliveries: readonly ClaimedDelivery[], lease: Lease): void {
    if (deliveries.length === 0) return;
    const { steady } = this.#options;
    const keys = this.#beforeStop(this.#lanes.read(deliveries.map(({ prefix }) => prefix)));
    keys.catch(this.#fail);
    const slots = deliveries.map(({ prefix }) => this.#pace.start(prefix, steady.now()));
    for (const [index, delivery] of deliveries.entries()) {
      const work = this.#deliver(delivery, { lease, slot: slots[index] as Slot, keys })
        .catch(this.#fail)
        .finally(() => this.#deliveries.delete(work));
      this.#deliveries.add(work);
    }
  }

  /**
   * Handles a leased delivery: judges, sends and reports it, and then judges the health of its webhook. If its lease is no
   * longer fresh when it could be sent, it is given back unsent.
   */
  async #deliver(delivery: ClaimedDelivery, { lease, slot, keys }: Started): Promise<void> {
    const { steady } = this.#options;
    const key = (await keys).get(delivery.prefix);
    const isLate = this.#stopping.signal.aborted || !lease.isFresh;
    // Others of the lane may be refused while this one's connection is made.
    const maySend = (): boolean => lease.isFresh && !this.#pace.isHeld(slot, steady.now());
    const judged = isLate ? released(delivery) : judge(delivery, key, this.#options);
    const made =
      judged.kind === 'send'
        ? await this.#beforeStop(attempt(delivery, judged, this.#options, { maySend, slot }))
        : undefined;
    if (made !== undefined) this.#pace.end(slot, steady.now(), made); // before the commit, so that a slow one does not delay the lane
    const report = made?.report ?? (judged.kind === 'send' ? released(delivery) : judged);
    const health = await this.#reports.record(report);
    traceDelivery(delivery, report, made);
    if (made === undefined) this.#pace.end(slot, steady.now());
    const endedAt = key?.ended?.position;
    const followed = this.#followHealth({ ...delivery, endedAt }, report, health); // at once, so that nothing more is sent to a webhook that will be switched off
    this.#wake();
    await followed;
  }

  /** Makes `stop` wait for the work, and for what its caller does as soon as it ends. */
  #beforeStop<T>(work: Promise<T>): Promise<T> {
    const ended = (): void => void this.#unreported.delete(work);
    this.#unreported.add(work);
    work.then(ended, ended);
    return work;
  }

  /** Judges the webhook's health after a recorded outcome. Nothing more is sent to it from here on if it is switched off. */
  async #followHealth(
    lane: Pick<ClaimedDelivery, 'prefix' | 'accountId'> & { readonly endedAt: Position | undefined },
    report: DeliveryReport,
    health: WebhookHealth | undefined,
  ): Promise<void> {
    if (health?.failedInARow === 0) this.#health.recovered(lane.prefix);
    else if (health !== undefined && report.kind === 'failed' && report.attempt !== null) {
      await this.#health.failed(lane, health, this.#options.clock.now());
      this.#wake(); // the lane may want something again
    }
  }
}
