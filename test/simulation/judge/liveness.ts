import { hasWrongTimes, type Judged } from './deliveries.ts';
import { Lanes } from './lanes.ts';

/** The longest time that a webhook may have a due delivery and no attempt, if it may be sent to and nothing is wrong. */
const MAX_STUCK_MS = 20_000;
/** How long a fault, or the start or end of a process, may explain a delay. */
const CALM_MS = 60_000;

interface LivenessJudged extends Judged {
  /** The times when processes started or ended. */
  readonly processesChangedAtMs: readonly number[];
}

/** Checks that each webhook that may be sent to makes progress by itself, whatever happens to the others. */
export function* judgeLiveness(judged: LivenessJudged): Generator<string, void> {
  const { model, deliveries, nowMs, faultsAtMs, processesChangedAtMs } = judged;
  const lanes = new Lanes(deliveries.values());
  const isUndisturbed = (fromMs: number, toMs: number): boolean =>
    ![...faultsAtMs, ...processesChangedAtMs].some((ms) => ms > fromMs - CALM_MS && ms < toMs);
  for (const entry of deliveries.values()) {
    const { owed, attempts, progress } = entry;
    const { account, key } = model.keyOf(owed.prefix) ?? {};
    if (account === undefined || key === undefined || hasWrongTimes(entry, judged)) continue;
    const mayBeSent = (fromMs: number, toMs: number): boolean =>
      model.hadAccess(account, fromMs - CALM_MS, toMs) &&
      !key.endedAtMs.some((ms) => ms > fromMs - CALM_MS && ms < toMs);
    const [first] = attempts;
    const isFirst = first?.cycle === 1 && first.number === 1;
    const times = [
      ...(isFirst ? [[owed.createdAtMs, first.startedAtMs] as const] : []),
      ...(progress.dueAtMs === null ? [] : [[progress.dueAtMs, nowMs] as const]),
    ];
    for (const [dueMs, untilMs] of times) {
      const stuckMs = lanes.idleMs(owed.prefix, dueMs, untilMs);
      if (stuckMs > MAX_STUCK_MS && mayBeSent(dueMs, untilMs) && isUndisturbed(dueMs, untilMs))
        yield `${owed.prefix} had no attempt for ${Math.round(stuckMs)} ms while transaction ${owed.transactionId} was due`;
    }
  }
}
