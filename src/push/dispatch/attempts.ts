import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { RequestFor } from '../message/requests.ts';
import { answerOf } from '../queue/answer.ts';
import type { ClaimedDelivery, DeliveryReport } from '../queue/delivery-queue.ts';
import type { Sender, SendRequest, SendResult } from '../sender/sender-port.ts';
import { type AttemptCheck, checkAttempt } from './attempt-check.ts';
import type { AttemptSummary } from './lane-slots.ts';
import type { ReportedDelivery } from './report-batch.ts';
import type { Scheduler } from './scheduler.ts';

/** How attempts are made, and when they are repeated. */
export interface AttemptTerms {
  readonly sender: Sender;
  readonly requestFor: RequestFor;
  /** The wait between this failed attempt and the next; `undefined` where it was the last. */
  readonly retryDelayMs: (delivery: ClaimedDelivery) => number | undefined;
}

export interface AttemptsOptions {
  readonly terms: AttemptTerms;
  readonly directory: Pick<Directory, 'account'>;
  readonly environment: Environment;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Why the delivery has to end before its attempt. */
  readonly endedSince: (delivery: ClaimedDelivery) => string | undefined;
  /** Called with what is to be recorded of a delivery, and its attempt where one was made. */
  readonly onEnded: (reported: ReportedDelivery, attempt: AttemptSummary | undefined) => void;
}

/** Judges each claimed delivery right before its attempt, makes the attempt and reports its outcome. */
export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  start(delivery: ClaimedDelivery): void {
    const { directory, environment, scheduler, endedSince } = this.#options;
    const atMs = scheduler.now();
    const ended = endedSince(delivery);
    const check =
      ended === undefined
        ? checkAttempt(directory, delivery, { environment, nowMs: atMs })
        : ({ kind: 'end', reason: ended } as const);
    if (check.kind === 'end') this.#end(delivery, check.reason);
    else if (check.kind === 'hold') this.#hold(delivery);
    else this.#send(delivery, check, atMs);
  }

  /** Gives up the claim: the delivery is due again. */
  giveBack(delivery: ClaimedDelivery): void {
    this.#report(delivery, { kind: 'released', ...claimOf(delivery) });
  }

  /** Waits for the attempts under way. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #send(delivery: ClaimedDelivery, { url, key }: Extract<AttemptCheck, { kind: 'go' }>, atMs: number): void {
    const { terms, log } = this.#options;
    let request: SendRequest;
    try {
      request = terms.requestFor(delivery, { url, key, atMs });
    } catch (error) {
      log.error({ err: error, ...linesOf(delivery) }, 'webhook can not be signed');
      this.#end(delivery, `it could not be signed: ${(error as Error).message}`);
      return;
    }
    const attempt = terms.sender
      .send(request)
      .catch((error: unknown) => this.#faultOf(delivery, error))
      .then((result) => {
        this.#underWay.delete(attempt);
        this.#attempted(delivery, atMs, result);
      });
    this.#underWay.add(attempt);
  }

  /** The sender must not throw. Where it does, only this attempt fails. */
  #faultOf(delivery: ClaimedDelivery, error: unknown): SendResult {
    this.#options.log.error(
      { err: error, ...linesOf(delivery) },
      'the sender failed: its attempt counts as failed',
    );
    const detail = reasonOf(error);
    return { outcome: { ok: false, kind: 'protocol', detail, answer: null }, durationMs: 0, lateMs: 0 };
  }

  #hold(delivery: ClaimedDelivery): void {
    this.#options.log.info(linesOf(delivery), 'delivery held: its account has no access');
    this.#report(delivery, { kind: 'held', ...claimOf(delivery) });
  }

  #end(delivery: ClaimedDelivery, reason: string): void {
    this.#options.log.info({ ...linesOf(delivery), reason }, 'delivery ended without an attempt');
    this.#report(delivery, { kind: 'failed', ...claimOf(delivery), attempt: null, reason });
  }

  #report(delivery: ClaimedDelivery, report: DeliveryReport): void {
    this.#options.onEnded({ delivery, report }, undefined);
  }

  #attempted(
    delivery: ClaimedDelivery,
    startedAtMs: number,
    { outcome, durationMs, lateMs }: SendResult,
  ): void {
    const { terms, scheduler, onEnded } = this.#options;
    const { cycle, attemptNumber: number } = delivery;
    const recorded = { ...claimOf(delivery), attempt: { cycle, number, startedAtMs, durationMs, outcome } };
    const waitMs = outcome.ok ? undefined : terms.retryDelayMs(delivery);
    let report: DeliveryReport;
    if (outcome.ok) report = { kind: 'delivered', ...recorded };
    else if (waitMs !== undefined) report = { kind: 'retry', ...recorded, dueAtMs: scheduler.now() + waitMs };
    else
      report = {
        kind: 'failed',
        ...recorded,
        reason: `attempt ${number}, the last, failed: ${answerOf(outcome)}`,
      };
    this.#log(report, delivery, { outcome, durationMs, lateMs });
    onEnded({ delivery, report }, { ok: outcome.ok, durationMs, lateMs });
  }

  /** Everything about an attempt in one line. */
  #log(report: DeliveryReport, delivery: ClaimedDelivery, { outcome, durationMs, lateMs }: SendResult): void {
    this.#options.log.info(
      {
        ...linesOf(delivery),
        cycle: delivery.cycle,
        attempt: delivery.attemptNumber,
        answer: answerOf(outcome),
        duration_ms: durationMs,
        ...(lateMs > 0 ? { late_ms: lateMs } : {}),
        next: report.kind,
        ...(report.kind === 'retry' ? { due_at_ms: report.dueAtMs } : {}),
      },
      'delivery attempted',
    );
  }
}

function claimOf({ id, prefix, leaseToken }: ClaimedDelivery) {
  return { id, prefix, leaseToken };
}

function linesOf({ id, prefix, transactionId }: ClaimedDelivery): Readonly<Record<string, unknown>> {
  return { delivery: id, key_prefix: prefix, transaction: transactionId };
}
