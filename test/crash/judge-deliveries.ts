import type { DeliverySummary } from '../../src/push/queue/delivery-reads.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { isRedacted, type Model } from './model.ts';
import type { SeenDelivery } from './receivers.ts';
import type { Kill, Stage } from './stage.ts';
import type { Workload } from './workload.ts';

/** From the request of an attempt until its outcome is recorded, on a busy machine. */
const RECORDED_WITHIN_MS = 3_000;
/** How late the test may notice a kill. */
const NOTICED_WITHIN_MS = 500;
const OFF = /^(the key was switched off|the key is switched off|the webhook (was|is) disabled)/;

interface Parts {
  readonly workload: Workload;
  readonly model: Model;
  readonly deliveries: readonly DeliverySummary[];
  readonly engines: Engines;
}

/** Compares what arrived with what the events require; returns the number of requests without a recorded attempt. */
export async function judgeDeliveries(stage: Stage, parts: Parts): Promise<number> {
  judgeOwed(stage, parts);
  judgeSilences(stage, parts.workload);
  judgeIdentity(stage, parts);
  let repeats = 0;
  for (const seen of stage.receivers.seen.values()) repeats += await judgeRepeats(stage, seen, parts.engines);
  return repeats;
}

/** Each owed transaction has one delivery, which arrived unless the transaction was voided or the key is off. */
function judgeOwed(stage: Stage, { workload, model, deliveries }: Parts): void {
  const logged = new Map(deliveries.map((delivery) => [delivery.transactionId, delivery]));
  for (const { id, account, isOwed, isVisible } of model.transactions.values()) {
    const delivery = logged.get(id);
    const what = `the delivery of transaction ${id}, account ${account},`;
    if (isOwed !== (delivery !== undefined)) {
      stage.fault(`${what} is ${isOwed ? 'owed and not there' : 'there and not owed'}`);
    }
    if (delivery === undefined) continue;
    const { state, reason } = delivery;
    const seen = stage.receivers.seen.get(delivery.id);
    if (state === 'delivered' && seen?.arrived !== true)
      stage.fault(`${what} is delivered and never arrived`);
    if (state === 'withdrawn' && isVisible) stage.fault(`${what} is withdrawn and was not voided`);
    if (state === 'failed' && isVisible && !(model.isKeyOff(account) && OFF.test(reason ?? ''))) {
      stage.fault(`${what} failed: ${reason}`);
    }
    const mustArrive = isVisible && !model.isKeyOff(account);
    if (mustArrive && seen?.arrived !== true)
      stage.fault(`${what} is owed and never arrived: it is ${state}`);
  }
  for (const { transactionId } of deliveries) {
    const isKnown =
      model.transactions.has(transactionId) || workload.known.get(transactionId)?.state === 'erased';
    if (!isKnown) stage.fault(`a delivery of transaction ${transactionId}, which is not in the log`);
  }
}

function judgeSilences(stage: Stage, { silences }: Workload): void {
  for (const { path, timesMs, transactionId } of stage.receivers.seen.values()) {
    for (const { path: silent, why, fromMs, untilMs } of silences) {
      const heard = path === silent ? timesMs.filter((ms) => ms > fromMs && ms < untilMs) : [];
      if (heard.length > 0) {
        stage.fault(
          `transaction ${transactionId} was sent to ${path} at ${heard}, ${why} from ${fromMs} to ${untilMs}`,
        );
      }
    }
  }
}

/** A transaction arrives under one id, with one text but for its driver, and is one delivery in the log. */
function judgeIdentity(stage: Stage, { deliveries, model }: Parts): void {
  const ids = new Map<string, string>();
  const logged = new Set(deliveries.map(({ id }) => id));
  for (const { id, transactionId, path, texts } of stage.receivers.seen.values()) {
    const other = ids.get(`${path} ${transactionId}`);
    if (other !== undefined) stage.fault(`transaction ${transactionId} came as ${id} and as ${other}`);
    ids.set(`${path} ${transactionId}`, id);
    const transaction = model.transactions.get(transactionId);
    const most = transaction !== undefined && isRedacted(transaction) ? 2 : 1; // before its driver was redacted, and after
    if (texts.size > most) stage.fault(`delivery ${id} came with ${texts.size} texts`);
    if (!logged.has(id))
      stage.fault(`delivery ${id} of transaction ${transactionId} came and is not in the log`);
  }
}

/**
 * A request without a recorded attempt was under way when a process or engine was killed: one for each kill.
 */
async function judgeRepeats(stage: Stage, seen: SeenDelivery, engines: Engines): Promise<number> {
  if (!seen.arrived && seen.timesMs.length === 0) return 0;
  const delivery = await engines.queue().find(seen.id);
  const recorded = delivery?.attempts.length ?? 0;
  const repeats = seen.timesMs.length - recorded;
  if (repeats <= 0) return 0;
  const explained = seen.timesMs.filter((ms) => stage.kills.some((kill) => hides(kill, ms))).length;
  if (explained < repeats) {
    const { id, timesMs } = seen;
    stage.fault(
      `delivery ${id} came ${timesMs.length} times, ${recorded} on record, ${delivery?.state}: ${timesMs.join(', ')}`,
    );
  }
  return repeats;
}

/** Whether the kill may have lost the outcome of an attempt whose request arrived then. */
function hides({ fromMs, untilMs }: Kill, requestMs: number): boolean {
  return requestMs > fromMs - RECORDED_WITHIN_MS && requestMs < untilMs + NOTICED_WITHIN_MS;
}
