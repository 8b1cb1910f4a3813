import type { Delivery } from '../../src/push/queue/delivery.ts';
import { type Judged, judgeDeliveries, judgeRequests } from '../simulation/judge/deliveries.ts';
import { isVisible, type Model } from '../simulation/judge/model.ts';
import { isKeyOff, isRedacted } from './model.ts';
import type { SeenTransaction } from './receivers.ts';
import { RETRY_DELAYS_MS, type Stage } from './stage.ts';
import type { Workload } from './workload.ts';

/** The time from the request of an attempt until its outcome is recorded, on a busy machine. */
const RECORDED_WITHIN_MS = 3_000;
const RETENTION_MS = 30 * 86_400_000;

interface Parts {
  readonly workload: Workload;
  readonly model: Model;
  readonly deliveries: readonly Delivery[];
}

/** Compares what arrived with what the events require, by the judge of the simulation and by what only this run knows. */
export function judgePush(stage: Stage, { workload, model, deliveries }: Parts): void {
  const prefixes = new Map(stage.customers.map(({ path, prefix }) => [path, prefix]));
  const arrivals = [...stage.receivers.seen.values()];
  const placeOf = ({ path, transactionId }: SeenTransaction) => `${prefixes.get(path)}/${transactionId}`;
  const seen = new Map(arrivals.map((each) => [placeOf(each), each.requests]));
  const entries = deliveries.map((owed) => {
    const progress = { ...owed, endedAtMs: null, leaseToken: null }; // nothing is claimed at this point
    return { owed, progress, attempts: owed.attempts };
  });
  const nowMs = Date.now();
  const judged: Judged = {
    model,
    seen,
    nowMs,
    wellSinceMs: nowMs,
    wrongTimes: [],
    delaysMs: RETRY_DELAYS_MS,
    deliveries: new Map(entries.map((entry) => [entry.owed.id, entry])),
    retentionMs: RETENTION_MS,
    faultsAtMs: stage.kills.flatMap(timesOf),
    explainedWithinMs: RECORDED_WITHIN_MS,
  };
  for (const fault of [...judgeDeliveries(judged), ...judgeRequests(judged)]) stage.fault(fault);
  judgeArrived(stage, model, judged);
  const logged = new Set(deliveries.map(({ prefix, transactionId }) => `${prefix}/${transactionId}`));
  for (const each of arrivals) {
    judgeTexts(stage, each, model);
    judgeSilences(stage, each, workload);
    if (!logged.has(placeOf(each)))
      stage.fault(`transaction ${each.transactionId} came to ${each.path}, and is not in the delivery log`);
  }
}

/** Checks, after all failed deliveries were redelivered, that every shown transaction arrived unless its key is off. */
function judgeArrived(stage: Stage, model: Model, { seen }: Judged): void {
  for (const transaction of model.transactions.values()) {
    if (!isVisible(transaction) || isKeyOff(model, transaction.account)) continue;
    for (const prefix of transaction.owedTo) {
      const requests = seen.get(`${prefix}/${transaction.id}`) ?? [];
      if (!requests.some(({ isTaken }) => isTaken))
        stage.fault(`transaction ${transaction.id} is owed to ${prefix} and never arrived`);
    }
  }
}

/** Checks that a transaction arrives with one text, except for its driver, who may have been redacted meanwhile. */
function judgeTexts(stage: Stage, { transactionId, path, texts }: SeenTransaction, model: Model): void {
  const transaction = model.transactions.get(transactionId);
  const most = transaction !== undefined && isRedacted(transaction) ? 2 : 1;
  if (texts.size > most) stage.fault(`transaction ${transactionId} came to ${path} with ${texts.size} texts`);
}

function judgeSilences(stage: Stage, { path, requests, transactionId }: SeenTransaction, of: Workload): void {
  for (const { path: silent, why, fromMs, untilMs } of of.silences) {
    const heard = requests.filter(({ atMs }) => path === silent && atMs > fromMs && atMs < untilMs);
    if (heard.length > 0)
      stage.fault(
        `transaction ${transactionId} was sent to ${path} at ${heard.map(({ atMs }) => atMs)}, ${why} from ${fromMs} to ${untilMs}`,
      );
  }
}

/** Returns each second in which a process or engine was dead, as the time of a fault. */
function timesOf({ fromMs, untilMs }: Stage['kills'][number]): number[] {
  const moments = [untilMs];
  for (let atMs = fromMs; atMs < untilMs; atMs += 1_000) moments.push(atMs);
  return moments;
}
