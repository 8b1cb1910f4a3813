import { disabledReason, keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { Clock } from '../../base/clock.ts';
import { Retry } from '../../base/retry.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { AppendHealthEvent } from '../health/health-events.ts';
import { HealthWatch } from '../health/health-watch.ts';
import type { HostOwners } from '../pace/host-owners.ts';
import { Pace, type Slot } from '../pace/pace.ts';
import type { ClaimedDelivery, DeliveryReport, NewDelivery, WebhookHealth } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { AccountWork } from './account-work.ts';
import { type AttemptTerms, attempt, type Judged, judge, released } from './attempt.ts';
import { Claims } from './claims.ts';
import type { Lease } from './lease.ts';
import { ReportBatch } from './report-batch.ts';

const BACKOFF = { maxMs: 5_000 } as const;

interface DispatcherOptions extends AttemptTerms {
  readonly queue: Pick<DeliveryQueue, 'changed' | 'enqueue' | 'claim' | 'report' | 'change' | 'heldAccounts'>;
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
  /** Called with the number of webhooks whose due deliveries wait for their receivers. */
  readonly onWaiting: (webhooks: number) => void;
}

/**
 * Makes the attempts of all due deliveries, each webhook in its own lane, at the pace of its receiver. It sleeps until the
 * next delivery is due, the pace allows another one, or an account has access again, unless it is notified of earlier work.
 * While the queue's store is unavailable it claims nothing and retries.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #pace: Pace;
  readonly #accounts: AccountWork;
  readonly #health: HealthWatch;
  readonly #reports: ReportBatch;
  readonly #claims: Claims;
  readonly #deliveries = new Set<Promise<void>>();
  /** The work of deliveries whose reports are not made yet. */
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
    const { queue, directory, clock, log, appendHealthEvent: append } = options;
    this.#options = options;
    this.failed.catch(() => undefined); // the owner may look at it later
    const waiting = { backoff: BACKOFF, sleep: async (ms: number) => this.#sleep(ms) };
    this.#retry = new Retry({ log, signal: this.#stopping.signal, component: 'dispatcher', ...waiting });
    this.#accounts = new AccountWork({
      queue,
      directory,
      onChanged: (change) => {
        if (change.kind === 'end lane') this.#pace.setBlocked(change.prefix, false);
        else this.#enabled(change);
      },
    });
    const { sender, owners, steady } = options;
    this.#reports = new ReportBatch({ queue, clock, steady, log });
    this.#pace = new Pace({
      termsOf(prefix) {
        const webhook = directory.key(prefix)?.key.webhook;
        return { url: webhook?.url, perSecond: webhook?.ratePerSecond ?? Infinity };
      },
      owns: (host) => owners.owns(host),
      openConnections: (host) => sender.openConnections(host),
      proxyWaitMs: (host) => sender.proxyWaitMs(host),
    });
    const mayClaim = (): boolean =>
      this.#started && !this.#stopping.signal.aborted && !this.#reports.isBehind;
    this.#claims = new Claims({
      ...options,
      pace: this.#pace,
      start: (...of) => this.#start(...of),
      mayClaim,
    });
    this.#health = new HealthWatch({ append, log, lanes: this.#pace });
  }

  /** Starts claiming. The directory must have caught up. */
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
   * Stores new deliveries durably, and starts attempts for those with a free slot. Rejects as the queue does; then some
   * may be stored, and the call can be repeated.
   */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    await this.#claims.accept(deliveries);
    this.#wake();
  }

  /** Must be called with every account event, including the history, in the order of the log. */
  accountEvent(event: AccountEvent, place: AccountEventPlace): void {
    if (this.#accounts.seen(event, place)) this.#wake();
  }

  /** Starts no further attempt. Resolves when those under way are recorded, and the other claims are given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.changed.remove(this.#listener);
    this.#cancelTimer?.();
    await this.#working;
    await this.#claims.whenIdle();
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
        this.#sleep(Math.min(await this.#claims.claimDue(), this.#accounts.nextAtMs() - clock.now()));
        this.#retry.succeeded();
      }
    } catch (error) {
      this.#notified = false;
      await this.#retry.waitAfter(error).catch(this.#fail);
    }
  }

  #enabled({ prefix, atMs }: { readonly prefix: string; readonly atMs: number }): void {
    const { clock, steady } = this.#options;
    this.#health.recovered(prefix);
    this.#pace.enabled(prefix, Math.max(0, clock.now() - atMs), steady.now());
  }

  #sleep(delayMs: number): void {
    this.#cancelTimer?.();
    if (this.#stopping.signal.aborted) return; // a timer would keep the thread from ending
    this.#cancelTimer = this.#options.clock.setTimer(Math.max(0, Math.ceil(delayMs)), () => this.#wake());
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
   * Handles a claimed delivery: judges, sends and reports it, and then judges the health of its webhook. If its lease is no
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
    if (made === undefined) this.#pace.end(slot, steady.now());
    if (report.kind === 'held') this.#accounts.checkAccess(delivery.accountId);
    const followed = this.#followHealth(delivery, report, health); // blocks the lane at once if it will be switched off
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

  /** Judges the webhook's health after a recorded outcome. The webhook is blocked from here until it is switched off. */
  async #followHealth(
    { prefix, accountId }: ClaimedDelivery,
    report: DeliveryReport,
    health: WebhookHealth | undefined,
  ): Promise<void> {
    if (health?.failedInARow === 0) this.#health.recovered(prefix);
    else if (health !== undefined && report.kind === 'failed' && report.attempt !== null) {
      const off = await this.#health.failed({ prefix, accountId }, health, this.#options.clock.now());
      const before = this.#options.directory.position + 1; // deliveries of later events are ended by its own event
      if (off !== undefined)
        this.#accounts.add({ kind: 'end lane', prefix, reason: disabledReason(off), before });
      this.#wake(); // the lane is ended now, or no longer blocked
    }
  }
}
