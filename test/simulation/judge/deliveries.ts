import { MAX_ATTEMPTS_KEPT } from '../../../src/push/queue/delivery.ts';
import type { Seen } from '../parts/receivers.ts';
import { type Entry, Lanes } from './lanes.ts';
import type { Model, ModelKey, ModelTransaction } from './model.ts';

const MAX_ATTEMPTS = 3;
const HOLD_SLACK_MS = 10_000;
const CALM_MS = 60_000;
/** How late ended deliveries may be removed: hourly, if a store can be reached at that time. */
const RETENTION_SLACK_MS = 4 * 3_600_000;
/** How far the clock of a process may be off, plus some time for a request to arrive. */
export const CLOCKS_MS = 1_300;
const PROMPT_MS = 6_000;
/** The longest time between two attempts of a lane whose receiver has refused requests for their rate. */
const MAX_IDLE_MS = 20_000;
const LONGEST_WAIT_MS = 360_000;
const LEASE_MS = 5_000;
/** Events this long before or after a wrong clock may have its wrong time. */
const NEAR_MS = 10 * 60_000;

/** A request that a receiver has received. */
export type Request = Pick<Seen, 'deliveryId' | 'atMs' | 'isTaken' | 'isLate'>;

/** The facts that the judge compares, from the simulation or from real processes (`test/crash`). */
export interface Judged {
  readonly model: Model;
  readonly deliveries: ReadonlyMap<string, Entry>;
  /** The requests by `prefix/transaction`. */
  readonly seen: ReadonlyMap<string, readonly Request[]>;
  readonly nowMs: number;
  readonly retentionMs: number;
  /** The configured waits between attempts. */
  readonly delaysMs: readonly number[];
  /** The times of faults that may repeat an attempt, ascending. */
  readonly faultsAtMs: readonly number[];
  /** A request this close to a fault may have lost its outcome. */
  readonly explainedWithinMs: number;
  /** Since when every receiver has been well and every process up. */
  readonly wellSinceMs: number;
  readonly wrongTimes: readonly { readonly fromMs: number; readonly untilMs: number }[];
}

/** True if it is due later than anything can be now. */
export function isDatedWrong({ dueAtMs, leaseToken }: Entry['progress'], nowMs: number): boolean {
  return (dueAtMs ?? 0) > nowMs + (leaseToken === null ? LONGEST_WAIT_MS : LEASE_MS) + CLOCKS_MS;
}

/** Compares the deliveries with what the events alone call for. Returns the contradictions, one a line. */
export function judgeDeliveries(judged: Judged): string[] {
  const { model, deliveries, nowMs, retentionMs } = judged;
  const faults: string[] = [];
  const byPlace = new Map<string, Entry>();
  const lanes = new Lanes(deliveries.values());
  for (const entry of deliveries.values()) {
    const place = `${entry.owed.prefix}/${entry.owed.transactionId}`;
    if (byPlace.has(place))
      faults.push(`two deliveries of transaction ${entry.owed.transactionId} to ${entry.owed.prefix}`);
    byPlace.set(place, entry);
    const transaction = model.transactions.get(entry.owed.transactionId);
    if (transaction === undefined) {
      if (!model.erased.has(entry.owed.transactionId))
        faults.push(`a delivery of transaction ${entry.owed.transactionId}, which is not in the log`);
      else if (
        entry.owed.record !== '' ||
        entry.attempts.some(({ outcome }) => (outcome.answer?.body ?? '') !== '')
      )
        faults.push(`the delivery of transaction ${entry.owed.transactionId} has what was erased`);
      continue;
    }
    if (!transaction.owedTo.has(entry.owed.prefix))
      faults.push(
        `transaction ${transaction.id} has a delivery to ${entry.owed.prefix}, which is not owed it`,
      );
    for (const fault of judgeEntry(entry, transaction, { ...judged, lanes })) faults.push(fault);
  }
  for (const transaction of model.transactions.values()) {
    const { recordedAtMs } = transaction;
    // A clock that is ahead may remove deliveries up to a day early: ages count up to a day after the newest event.
    const wasAhead = judged.wrongTimes.some(({ untilMs }) => untilMs > recordedAtMs);
    if (nowMs - recordedAtMs > retentionMs - (wasAhead ? 24 : 1) * 3_600_000) continue;
    for (const prefix of transaction.owedTo)
      if (!byPlace.has(`${prefix}/${transaction.id}`))
        faults.push(`transaction ${transaction.id} is owed to ${prefix}, and there is no delivery`);
  }
  return faults;
}

function judgeEntry(
  entry: Entry,
  transaction: ModelTransaction,
  judged: Judged & { readonly lanes: Lanes },
): string[] {
  const { model, nowMs, wellSinceMs, lanes } = judged;
  const { owed, progress } = entry;
  const { prefix } = owed;
  const found = model.keyOf(prefix);
  if (found === undefined) return [`a delivery to ${prefix}, which is no key`];
  const { account, key } = found;
  const what = `the delivery of transaction ${transaction.id} to ${prefix}`;
  const faults: string[] = [];
  const fault = (text: string): void => void faults.push(`${what} ${text}`);
  const hasAccess = model.hasAccess(account, nowMs);
  const wasVoided = transaction.withdrawnAtMs !== undefined;
  const isOver =
    progress.cycle === 1 && key.endedAtMs.some((ms) => ms > transaction.recordedAtMs && nowMs - ms > 60_000);
  if (isOver && progress.state === 'pending') fault('is pending, though its webhook was ended');
  switch (progress.state) {
    case 'delivered':
      if (!(judged.seen.get(`${prefix}/${transaction.id}`) ?? []).some((each) => mayBeTaken(each, judged)))
        fault('is delivered, and its receiver never took it');
      break;
    case 'withdrawn':
      if (!wasVoided) fault('is withdrawn, and the transaction was not voided');
      break;
    case 'failed':
      if (!isExplained(entry, key, transaction)) fault(`failed without a cause: ${progress.reason}`);
      break;
    case 'pending': {
      if (wasVoided) fault('is pending, and the transaction was voided');
      const dueMs = progress.dueAtMs ?? 0;
      const sinceMs = Math.max(dueMs, wellSinceMs, account.accessChangedAtMs);
      const isStuck = lanes.idleMs(prefix, sinceMs, nowMs) > 60_000;
      if (isDatedWrong(progress, nowMs)) fault(`is due only in ${Math.round((dueMs - nowMs) / 1000)} s`);
      if (isStuck && hasAccess && accessIsOld(model, account.id, nowMs))
        fault(`is pending, and was due ${Math.round((nowMs - dueMs) / 1000)} s ago`);
      const mayWait = key.isOn && key.webhook !== undefined && !key.webhook.isDisabled;
      if (isStuck && !mayWait) fault('is pending, and its webhook is off');
      break;
    }
    default:
      fault(`is ${progress.state}`);
  }
  if (progress.cycle - 1 > key.redeliveries)
    fault(`was redelivered ${progress.cycle - 1} times, ${key.redeliveries} times by request`);
  if (progress.endedAtMs !== null && nowMs - progress.endedAtMs > judged.retentionMs + RETENTION_SLACK_MS)
    fault('is kept after the retention');
  if (hasWrongTimes(entry, judged)) return faults;
  for (const text of judgeAttempts(entry, judged)) fault(text);
  for (const text of judgeTimes(entry, transaction, judged)) fault(text);
  return faults;
}

/** True if it was made or sent while a clock was wrong. */
export function hasWrongTimes(
  { owed: { prefix, transactionId, occurredAtMs } }: Entry,
  judged: Judged,
): boolean {
  const sent = (judged.seen.get(`${prefix}/${transactionId}`) ?? []).map(({ atMs }) => atMs);
  return judged.wrongTimes.some(({ fromMs, untilMs }) =>
    [occurredAtMs, ...sent].some((ms) => ms > fromMs - NEAR_MS && ms < untilMs + NEAR_MS),
  );
}

/** True if a request may count as accepted: a slow process accepts answers that arrived while it was slow. */
function mayBeTaken({ isTaken, isLate, atMs }: Request, { faultsAtMs }: Judged): boolean {
  return isTaken || (isLate && faultsAtMs.some((ms) => Math.abs(ms - atMs) < 20_000));
}

/** True if access has existed for a while, since attempts begin some moments after it does. */
function accessIsOld(model: Model, accountId: number, nowMs: number): boolean {
  const account = model.accounts.get(accountId);
  return account !== undefined && model.hasAccess(account, nowMs - HOLD_SLACK_MS);
}

function isExplained({ progress, attempts }: Entry, key: ModelKey, transaction: ModelTransaction): boolean {
  const inCycle = attempts.filter(({ cycle }) => cycle === progress.cycle);
  if (inCycle.length >= MAX_ATTEMPTS && inCycle.every(({ outcome }) => !outcome.ok)) return true;
  if (/cancelled|could not be signed/.test(progress.reason ?? '')) return true;
  // The time of the last redelivery is unknown. Otherwise an event after the end is not the one that ended it.
  const sinceMs = progress.cycle > 1 ? 0 : transaction.recordedAtMs;
  return (
    key.endedAtMs.some((ms) => ms >= sinceMs) &&
    /switched off|removed|disabled|no webhook|not known/.test(progress.reason ?? '')
  );
}

function judgeAttempts({ attempts, progress }: Entry, { delaysMs }: Judged): string[] {
  const faults: string[] = [];
  for (const [cycle, ofCycle] of Map.groupBy(attempts, (attempt) => attempt.cycle)) {
    if (ofCycle.length > MAX_ATTEMPTS + 1) faults.push(`had ${ofCycle.length} attempts in cycle ${cycle}`);
    for (const [index, { number, startedAtMs }] of ofCycle.entries()) {
      const before = ofCycle[index - 1];
      if (before === undefined || number !== before.number + 1) continue;
      const leastMs = delaysMs[before.number - 1] ?? 0;
      const waitedMs = startedAtMs - (before.startedAtMs + before.durationMs);
      if (!before.outcome.ok && waitedMs < 0.9 * leastMs - 1_000)
        faults.push(`was attempted again after ${waitedMs} ms, not ${leastMs}`);
    }
    const taken = ofCycle.filter(({ outcome }) => outcome.ok);
    if (taken.length > 0 && cycle === progress.cycle && progress.state === 'pending')
      faults.push('was taken, and is pending');
  }
  return faults;
}

/** Checks that things happen at their times if nothing had gone wrong for a while. */
function judgeTimes(
  { owed, attempts }: Entry,
  transaction: ModelTransaction,
  judged: Judged & { readonly lanes: Lanes },
): string[] {
  const { model, faultsAtMs, lanes } = judged;
  const isCalm = (fromMs: number, toMs: number): boolean =>
    !faultsAtMs.some((ms) => ms > fromMs - CALM_MS && ms < toMs + 5_000);
  const faults: string[] = [];
  const lateMs = owed.createdAtMs - transaction.recordedAtMs;
  if (lateMs > PROMPT_MS && isCalm(transaction.recordedAtMs, owed.createdAtMs))
    faults.push(`was made ${lateMs} ms after the transaction was recorded`);
  const { account } = model.keyOf(owed.prefix) ?? {};
  for (const [index, { startedAtMs, number, cycle }] of attempts.entries()) {
    const before = attempts[index - 1];
    if (
      before === undefined ||
      before.cycle !== cycle ||
      number !== before.number + 1 ||
      account === undefined
    )
      continue;
    const endedMs = before.startedAtMs + before.durationMs;
    const dueMs = endedMs + 1.1 * (judged.delaysMs[before.number - 1] ?? 0);
    const hadAccess = model.hasAccess(account, endedMs) && model.hasAccess(account, startedAtMs);
    if (
      account.accessChangedAtMs < endedMs &&
      hadAccess &&
      lanes.idleMs(owed.prefix, dueMs, startedAtMs) > MAX_IDLE_MS && // unless others of its lane were attempted
      isCalm(endedMs, startedAtMs)
    )
      faults.push(`was attempted again only after ${startedAtMs - endedMs} ms, though nothing was wrong`);
  }
  return faults;
}

/**
 * Checks that a request has the id of its delivery and a recorded attempt. One without an attempt needs a fault at that
 * time that lost its outcome.
 */
export function judgeRequests(judged: Judged): string[] {
  const { deliveries, seen } = judged;
  const faults: string[] = [];
  const byPlace = new Map(
    [...deliveries.values()].map((entry) => [`${entry.owed.prefix}/${entry.owed.transactionId}`, entry]),
  );
  for (const [place, requests] of seen) {
    const [prefix = '', transaction] = place.split('/');
    const entry = byPlace.get(place);
    if (entry === undefined) continue;
    const others = requests.filter(({ deliveryId }) => deliveryId !== entry.owed.id);
    for (const { deliveryId } of others)
      faults.push(`transaction ${transaction} came to ${prefix} as ${deliveryId}, and is ${entry.owed.id}`);
    const { attempts } = entry;
    if (attempts.length >= MAX_ATTEMPTS_KEPT || hasWrongTimes(entry, judged)) continue;
    const unexplained = unrecorded(requests, attempts).filter(({ atMs }) => !isExplainedAt(atMs, judged));
    const excess = Math.min(unexplained.length, requests.length - attempts.length);
    if (excess > 0)
      faults.push(
        `transaction ${transaction} came to ${prefix} ${requests.length} times, ${attempts.length} on record, and nothing had ended: ${unexplained.map(({ atMs }) => new Date(atMs).toISOString())}`,
      );
  }
  return faults;
}

/** Returns the requests that remain when each recorded attempt has taken one at its time. */
function unrecorded(requests: readonly Request[], attempts: Entry['attempts']): Request[] {
  const left = requests.toSorted((a, b) => a.atMs - b.atMs);
  for (const { startedAtMs, durationMs } of attempts) {
    const untilMs = startedAtMs + Math.max(durationMs, 600) + CLOCKS_MS;
    const at = left.findIndex(({ atMs }) => atMs >= startedAtMs - CLOCKS_MS && atMs <= untilMs);
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}

function isExplainedAt(atMs: number, { faultsAtMs, explainedWithinMs }: Judged): boolean {
  return faultsAtMs.some((ms) => Math.abs(ms - atMs) < explainedWithinMs);
}
