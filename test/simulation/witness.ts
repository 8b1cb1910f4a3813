import type { Mail } from '../../src/push/notices/mailer.ts';
import type { DeliveryReport } from '../../src/push/queue/delivery.ts';
import { judgeMails, type Mailed } from './judge/mails.ts';
import { judgeRetry } from './judge/pace.ts';
import { judgeRecord } from './judge/records.ts';
import { Streaks } from './judge/streaks.ts';
import type { Seen } from './parts/receivers.ts';
import type { Simulation } from './simulation.ts';

/** How long an old address may be used, including an attempt under way. */
const MAX_NAME_AGE_MS = 45_000;
const HOUR_MS = 3_600_000;
/** The maximum of requests for a delivery: three attempts, those that a storm repeats, and those of a redelivery. */
const MAX_AN_HOUR = 15;
const CALM_MS = 60_000;
/** The time in which a receiver has to answer. */
const ATTEMPT_MS = 500;

/** Judges at once what leaves the service: requests to receivers, mails, and reports about deliveries. */
export class Witness {
  /** The requests by `prefix/transaction`. */
  readonly seen = new Map<string, Seen[]>();
  /** The key that each host belongs to. */
  readonly hosts = new Map<string, string>();
  readonly mails: Mailed[] = [];
  readonly streaks: Streaks;
  readonly #of: Simulation;

  constructor(simulation: Simulation) {
    this.#of = simulation;
    this.streaks = new Streaks(simulation.model, () => simulation.timeline.nowMs);
  }

  get requests(): number {
    return [...this.seen.values()].reduce((sum, each) => sum + each.length, 0);
  }

  sawMail({ to, subject, text }: Mail): void {
    const line = text.split('\n', 1)[0] ?? '';
    this.mails.push({ to: to.join(), subject, line, atMs: this.#of.timeline.nowMs });
    this.#of.history.add(to.join(), `gets a mail: ${subject}`);
  }

  /** Counts for the failure streaks, before the reports are stored. */
  sawReports(reports: readonly DeliveryReport[]): void {
    this.#of.readLog();
    for (const report of reports) {
      const entry = this.#of.stores.queue.get(report.id);
      const counts = entry?.progress.leaseToken === report.leaseToken && entry.progress.state === 'pending';
      this.streaks.see(report, counts);
      const fault = judgeRetry(report);
      if (fault !== undefined && !this.#of.isClockWrong()) this.#of.violation(fault);
    }
  }

  sawRequest(host: string, seen: Seen): void {
    const { history, model } = this.#of;
    this.#of.readLog();
    const prefix = this.hosts.get(host) ?? '';
    const { transactionId } = seen;
    history.add(
      host,
      `gets transaction ${transactionId} (${seen.isTaken ? 'takes it' : 'does not take it'})`,
    );
    this.#judgePlace(host, seen, prefix);
    // A receiver refuses a signature whose time is off by five minutes.
    if (!seen.isGenuine && !this.#of.isClockWrong())
      this.#of.violation(`a request to ${host} has a wrong signature`);
    if (transactionId === undefined)
      return void this.#of.violation(`a request to ${host} has no transaction: ${seen.body.slice(0, 200)}`);
    const transaction = model.transactions.get(transactionId);
    if (transaction === undefined) {
      if (!model.erased.has(transactionId))
        this.#of.violation(`transaction ${transactionId} is sent and was never recorded`);
      return;
    }
    const fault = (text: string): void => this.#of.violation(`transaction ${transactionId} is sent ${text}`);
    const isCalm = this.#of.isCalmFor(CALM_MS, seen.atMs);
    if (isCalm && seen.atMs > (transaction.withdrawnAtMs ?? seen.atMs) + 5_000)
      fault('long after it was voided');
    if (!transaction.owedTo.has(prefix)) fault(`to ${prefix}, which is not owed it`);
    const record = JSON.parse(seen.body).data.transaction;
    const wrong = judgeRecord(record, transaction, transaction.numberFor.has(prefix));
    if (wrong !== undefined) fault(`to ${prefix} and ${wrong}`);
    const isItsOwn = model
      .keyOf(prefix)
      ?.key.urls.some(
        ({ url, fromMs, untilMs }) =>
          new URL(url).host === host && fromMs <= seen.atMs && seen.atMs < untilMs + 60_000,
      );
    if (!isItsOwn) fault(`to ${host}, which is not the webhook of ${prefix}`);
    const { account } = model.keyOf(prefix) ?? {};
    const sinceMs = seen.atMs - 10_000;
    const isClosed = account && [sinceMs, seen.atMs].every((ms) => !model.hasAccess(account, ms));
    if (isCalm && isClosed && account.accessChangedAtMs < sinceMs)
      fault(`to ${prefix}, whose account has no access`);
  }

  mailFaults(): string[] {
    const { model, timeline, faultsAtMs } = this.#of;
    return judgeMails(model, this.mails, { nowMs: timeline.nowMs, faultsAtMs });
  }

  #judgePlace(host: string, seen: Seen, prefix: string): void {
    const place = `${prefix}/${seen.transactionId}`;
    const list = this.seen.get(place) ?? [];
    this.seen.set(place, list);
    this.#judgeTogether(list, seen, prefix);
    list.push(seen);
    const lately = list.filter(({ atMs }) => atMs > seen.atMs - HOUR_MS).length;
    if (lately > MAX_AN_HOUR)
      this.#of.violation(
        `transaction ${seen.transactionId} came to ${prefix} ${lately} times within an hour`,
      );
    const receiver = this.#of.receivers.byHost.get(host);
    if (receiver && seen.address !== receiver.address && seen.atMs > receiver.movedAtMs + MAX_NAME_AGE_MS)
      this.#of.violation(`${host} is called at ${seen.address}, from where it moved`);
  }

  /** Checks that no other attempt of the delivery is under way. Within one attempt a request may be sent again. */
  #judgeTogether(before: readonly Seen[], seen: Seen, prefix: string): void {
    const isOther = ({ from, signature }: Seen): boolean =>
      from !== seen.from || signature !== seen.signature;
    const other = before.find(
      (each) =>
        isOther(each) &&
        (each.heardAtMs ?? each.sentAtMs + ATTEMPT_MS) > seen.sentAtMs &&
        each.sentAtMs <= seen.sentAtMs,
    );
    if (other !== undefined && !this.#of.isClockWrong())
      this.#of.violation(
        `transaction ${seen.transactionId} is sent to ${prefix} by ${seen.from} while an attempt of ${other.from} is under way`,
      );
  }
}
