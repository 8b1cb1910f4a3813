import type { MemoryDeliveries } from '../../../src/engines/memory/queue/deliveries.ts';
import type { Seen } from '../parts/receivers.ts';
import type { Model, ModelKey, ModelTransaction } from './model.ts';

const MAX_ATTEMPTS = 3;
const DELAYS_MS = [30_000, 150_000];
const HOLD_SLACK_MS = 10_000;
const CALM_MS = 60_000;
/** It is removed hourly, where a store can be reached at that time. */
const RETENTION_SLACK_MS = 4 * 3_600_000;
/** How far the clock of a process may be away, and some time for a request to arrive. */
const CLOCKS_MS = 1_300;
const PROMPT_MS = 6_000;

type Entry = MemoryDeliveries['entries'] extends Map<string, infer E> ? E : never;

export interface Judged {
  readonly model: Model;
  readonly deliveries: ReadonlyMap<string, Entry>;
  /** By `prefix/transaction`. */
  readonly seen: ReadonlyMap<string, readonly Seen[]>;
  readonly nowMs: number;
  readonly retentionMs: number;
  /** When something went wrong that may repeat an attempt: the times of faults, ascending. */
  readonly faultsAtMs: readonly number[];
  /** Every receiver has been well, and every process up, since then. */
  readonly wellSinceMs: number;
}

/** What the deliveries should be by the events alone; the contradictions, each in a line. */
export function judgeDeliveries(judged: Judged): string[] {
  const { model, deliveries, nowMs, retentionMs } = judged;
  const faults: string[] = [];
  const byPlace = new Map<string, Entry>();
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
        entry.owed.record.head !== '' ||
        entry.attempts.some(({ outcome }) => (outcome.answer?.body ?? '') !== '')
      )
        faults.push(`the delivery of transaction ${entry.owed.transactionId} has what was erased`);
      continue;
    }
    if (!transaction.owedTo.has(entry.owed.prefix))
      faults.push(
        `transaction ${transaction.id} has a delivery to ${entry.owed.prefix}, which is not owed it`,
      );
    for (const fault of judgeEntry(entry, transaction, judged)) faults.push(fault);
  }
  for (const transaction of model.transactions.values()) {
    if (nowMs - transaction.recordedAtMs > retentionMs - 3_600_000) continue;
    for (const prefix of transaction.owedTo)
      if (!byPlace.has(`${prefix}/${transaction.id}`))
        faults.push(`transaction ${transaction.id} is owed to ${prefix}, and there is no delivery`);
  }
  return faults;
}

function judgeEntry(entry: Entry, transaction: ModelTransaction, judged: Judged): string[] {
  const { model, nowMs, wellSinceMs } = judged;
  const { owed, progress, attempts } = entry;
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
  if (isOver && (progress.state === 'held' || progress.state === 'pending'))
    fault(`is ${progress.state}, though its webhook was ended`);
  switch (progress.state) {
    case 'delivered':
      if (!(judged.seen.get(`${prefix}/${transaction.id}`) ?? []).some((each) => mayBeTaken(each, judged)))
        fault('is delivered, and its receiver never took it');
      break;
    case 'withdrawn':
      if (!wasVoided) fault('is withdrawn, and the transaction was not voided');
      break;
    case 'held':
      if (wasVoided) fault('is held, and the transaction was voided');
      if (
        hasAccess &&
        key.isOn &&
        nowMs - account.accessChangedAtMs > HOLD_SLACK_MS &&
        accessIsOld(model, account.id, nowMs)
      )
        fault('is held, and its account has access');
      break;
    case 'failed':
      if (!isExplained(entry, key, transaction)) fault(`failed without a cause: ${progress.reason}`);
      break;
    case 'pending': {
      if (wasVoided) fault('is pending, and the transaction was voided');
      const dueMs = progress.dueAtMs ?? 0;
      const isStuck = nowMs - Math.max(dueMs, wellSinceMs) > 60_000;
      if (isStuck && hasAccess) fault(`is pending, and was due ${Math.round((nowMs - dueMs) / 1000)} s ago`);
      if (isStuck && !hasAccess) fault('is pending and due, and its account has no access');
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
  for (const text of judgeAttempts(attempts, progress)) fault(text);
  for (const text of judgeTimes(entry, transaction, judged)) fault(text);
  return faults;
}

/** A process that was slow itself takes what had arrived by then: it can't know when. */
function mayBeTaken({ isTaken, isLate, atMs }: Seen, { faultsAtMs }: Judged): boolean {
  return isTaken || (isLate && faultsAtMs.some((ms) => Math.abs(ms - atMs) < 20_000));
}

/** Whether a profile that makes access now has been doing so for a while: holds end some moments after it. */
function accessIsOld(model: Model, accountId: number, nowMs: number): boolean {
  const account = model.accounts.get(accountId);
  return account !== undefined && model.hasAccess(account, nowMs - HOLD_SLACK_MS);
}

function isExplained({ progress, attempts }: Entry, key: ModelKey, transaction: ModelTransaction): boolean {
  const inCycle = attempts.filter(({ cycle }) => cycle === progress.cycle);
  if (inCycle.length >= MAX_ATTEMPTS && inCycle.every(({ outcome }) => !outcome.ok)) return true;
  if (/cancelled|could not be signed/.test(progress.reason ?? '')) return true;
  // When it was redelivered last nobody knows; else what was recorded after the end is none of what ended.
  const sinceMs = progress.cycle > 1 ? 0 : transaction.recordedAtMs;
  return (
    key.endedAtMs.some((ms) => ms >= sinceMs) &&
    /switched off|removed|disabled|no webhook|not known/.test(progress.reason ?? '')
  );
}

function judgeAttempts(attempts: Entry['attempts'], progress: Entry['progress']): string[] {
  const faults: string[] = [];
  for (const [cycle, ofCycle] of Map.groupBy(attempts, (attempt) => attempt.cycle)) {
    if (ofCycle.length > MAX_ATTEMPTS + 1) faults.push(`had ${ofCycle.length} attempts in cycle ${cycle}`);
    for (const [index, { number, startedAtMs }] of ofCycle.entries()) {
      const before = ofCycle[index - 1];
      if (before === undefined || number !== before.number + 1) continue;
      const leastMs = DELAYS_MS[before.number - 1] ?? 0;
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

/** Where nothing had gone wrong for a while, things happen at their times. */
function judgeTimes({ owed, attempts }: Entry, transaction: ModelTransaction, judged: Judged): string[] {
  const { model, faultsAtMs } = judged;
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
    const mostMs = 1.1 * (DELAYS_MS[before.number - 1] ?? 0) + PROMPT_MS;
    const hadAccess = model.hasAccess(account, endedMs) && model.hasAccess(account, startedAtMs);
    if (
      account.accessChangedAtMs < endedMs &&
      hadAccess &&
      startedAtMs - endedMs > mostMs &&
      isCalm(endedMs, startedAtMs)
    )
      faults.push(`was attempted again only after ${startedAtMs - endedMs} ms, though nothing was wrong`);
  }
  return faults;
}

/** More requests than attempts on record: each needs something that ended at that time. */
export function judgeRepeats({ deliveries, seen, faultsAtMs }: Judged): string[] {
  const faults: string[] = [];
  const byPlace = new Map(
    [...deliveries.values()].map((entry) => [`${entry.owed.prefix}/${entry.owed.transactionId}`, entry]),
  );
  for (const [place, requests] of seen) {
    const [prefix = '', transaction] = place.split('/');
    const entry = byPlace.get(place);
    if (entry === undefined || requests.length <= entry.attempts.length) continue;
    if (entry.attempts.length >= 10) continue; // as many as are kept
    const unrecorded = requests.filter(
      ({ atMs }) =>
        !entry.attempts.some(
          ({ startedAtMs, durationMs }) =>
            atMs >= startedAtMs - CLOCKS_MS && atMs <= startedAtMs + Math.max(durationMs, 600) + CLOCKS_MS,
        ),
    );
    const unexplained = unrecorded.filter(
      ({ atMs }) => !faultsAtMs.some((ms) => ms > atMs - 40_000 && ms < atMs + 40_000),
    );
    const excess = Math.min(unexplained.length, requests.length - entry.attempts.length);
    if (excess > 0)
      faults.push(
        `transaction ${transaction} came to ${prefix} ${requests.length} times, ${entry.attempts.length} on record, and nothing had ended: ${unexplained.map(({ atMs }) => new Date(atMs).toISOString())}`,
      );
  }
  return faults;
}
