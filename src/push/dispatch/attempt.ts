import { keyIneligibleReason } from '../../../projections/deliveries.ts';
import type { StoredKey } from '../../accounts/rows/read-rows.ts';
import type { AlarmClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { traceField } from '../../base/tracing/spans.ts';
import { accessOf } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { RequestFor } from '../message/envelope.ts';
import type { AttemptEnd, Slot } from '../pace/pace.ts';
import { retryAfterMs } from '../pace/retry-after.ts';
import type { ClaimedDelivery, DeliveryReport } from '../queue/delivery.ts';
import { answerOf } from '../queue/failure-streak.ts';
import type { Sender } from '../sender/sender.ts';
import type { SendRequest, SendResult } from '../sender/timed-send.ts';

/** The metrics of attempts. */
export interface DeliveryMetrics {
  /** Sets the number of webhooks whose due deliveries wait for their receivers. */
  waitingLanes(count: number): void;
  /** An attempt could not be signed. */
  unsigned(): void;
  /** An attempt begins. `attempted` follows, unless a fault ends the program. */
  attempting(): void;
  attempted(
    delivery: Pick<ClaimedDelivery, 'cycle' | 'attemptNumber'>,
    result: SendResult,
    by: Pick<Sender, 'proxy'>,
  ): void;
}

/** Everything that judging, making and repeating attempts needs. */
export interface AttemptTerms {
  readonly environment: Environment;
  readonly sender: Sender;
  readonly requestFor: RequestFor;
  /** The time from this failed attempt to the next one; `undefined` if it was the last. */
  readonly retryDelayMs: (delivery: ClaimedDelivery) => number | undefined;
  readonly clock: AlarmClock;
  readonly log: Log;
  readonly metrics: DeliveryMetrics;
}

/** The request to send now, or the report to make instead. */
export type Judged =
  | { readonly kind: 'send'; readonly request: SendRequest; readonly accessSinceMs: number }
  | DeliveryReport;

/**
 * Judges a delivery by its key as it was read right before the attempt. It ends if a later event has ended the deliveries of its
 * key. If nothing may be sent now, it is given back and waits.
 */
export function judge(
  delivery: ClaimedDelivery,
  found: StoredKey | undefined,
  terms: Omit<AttemptTerms, 'sender' | 'retryDelayMs'>,
): Judged {
  const { environment, requestFor, clock, log, metrics } = terms;
  const end = (reason: string): DeliveryReport => {
    log.info({ ...linesOf(delivery), reason }, 'delivery ended without an attempt');
    return { kind: 'failed', ...claimOf(delivery), attempt: null, reason };
  };
  if (found?.unreadable !== null) return released(delivery);
  if (found.accountId !== delivery.accountId) return end('the key belongs to another account');
  const { key, access: ofAccount, ended } = found;
  // A redelivery was requested after the event that ended the first cycle.
  if (ended !== undefined && ended.position > delivery.position && delivery.cycle === 1)
    return end(ended.reason);
  const atMs = clock.now();
  const access = accessOf(ofAccount, atMs);
  const isOff = keyIneligibleReason(key, environment) !== undefined;
  if (!access.open || isOff || key.webhook === null) return released(delivery);
  try {
    const request = requestFor(delivery, { url: key.webhook.url, key, atMs });
    return { kind: 'send', request, accessSinceMs: access.sinceMs };
  } catch (error) {
    metrics.unsigned();
    log.error({ err: error, ...linesOf(delivery) }, 'webhook cannot be signed');
    return end(`it could not be signed: ${(error as Error).message}`);
  }
}

/** Makes the attempt. Returns its result and the report to make; `undefined` if nothing was sent, since it no longer might be. */
export async function attempt(
  delivery: ClaimedDelivery,
  { request, accessSinceMs }: Extract<Judged, { readonly kind: 'send' }>,
  { sender, retryDelayMs, clock, log, metrics }: AttemptTerms,
  { maySend, slot }: { readonly maySend: () => boolean; readonly slot: Slot },
): Promise<(AttemptEnd & { readonly report: DeliveryReport; readonly url: string }) | undefined> {
  const startedAtMs = clock.now();
  metrics.attempting();
  const result = await sender.send({ ...request, maySend });
  metrics.attempted(delivery, result, sender);
  if (result.isWithheld) return undefined;
  const { outcome, durationMs, lateMs, isSentAgain } = result;
  const { cycle, attemptNumber: number } = delivery;
  const again = isSentAgain ? { sentAgain: true } : {};
  const made = { cycle, number, startedAtMs, durationMs, othersUnderWay: slot.others, ...again, outcome };
  const recorded = { ...claimOf(delivery), attempt: made };
  const askedMs = retryAfterMs(outcome, clock.now());
  const waitMs = outcome.ok ? undefined : retryDelayMs(delivery);
  let report: DeliveryReport;
  if (outcome.ok) report = { kind: 'delivered', ...recorded };
  else if (waitMs !== undefined)
    report = { kind: 'retry', ...recorded, dueAtMs: clock.now() + Math.max(waitMs, askedMs ?? 0) };
  else
    report = {
      kind: 'failed',
      ...recorded,
      accessSinceMs,
      reason: `attempt ${number}, the last, failed: ${answerOf(outcome)}`,
    };
  log.info(
    {
      ...linesOf(delivery),
      cycle,
      attempt: number,
      answer: answerOf(outcome),
      duration_ms: durationMs,
      ...(lateMs > 0 ? { late_ms: lateMs } : {}),
      ...(isSentAgain ? { sent_again: true } : {}),
      next: report.kind,
      ...(report.kind === 'retry' ? { due_at_ms: report.dueAtMs } : {}),
    },
    'delivery attempted',
  );
  return { result, askedMs, report, url: request.url };
}

/** The report that gives up the claim, so that the delivery is due again. */
export function released(delivery: ClaimedDelivery): DeliveryReport {
  return { kind: 'released', ...claimOf(delivery) };
}

function claimOf({ id, prefix, transactionId, leaseToken }: ClaimedDelivery) {
  return { id, prefix, transactionId, leaseToken };
}

function linesOf({ id, prefix, transactionId }: ClaimedDelivery): Readonly<Record<string, unknown>> {
  return { delivery: id, key_prefix: prefix, transaction: transactionId, ...traceField(id) };
}
