import type { Attempt, DeliveryReport } from '../delivery-queue.ts';
import { endOf } from '../health-run.ts';
import type { Standing, StandingRow } from './rows.ts';

/**
 * How a delivery stands after a report, `undefined` where the report changes nothing: another claim has the
 * delivery, or it has ended. A success is recorded all the same while its cycle lasts: the receiver has it.
 */
export function nextState(row: StandingRow, report: DeliveryReport, nowMs: number): Standing | undefined {
  const holds = row.state === 'pending' && row.lease === report.lease;
  const lateSuccess =
    report.kind === 'delivered' && row.state !== 'delivered' && row.cycle === report.attempt.cycle;
  if (!holds && !lateSuccess) return undefined;
  const open = { reason: null, endedAtMs: null, cycle: row.cycle, lease: null };
  const { attemptsInCycle } = row;
  switch (report.kind) {
    case 'delivered': {
      const endedAtMs = endOf(report.attempt);
      return { ...open, state: 'delivered', endedAtMs, attemptsInCycle: attemptsInCycle + 1, dueAtMs: null };
    }
    case 'retry': {
      const { dueAtMs } = report;
      return { ...open, state: 'pending', attemptsInCycle: attemptsInCycle + 1, dueAtMs };
    }
    case 'failed': {
      const { attempt, reason } = report;
      const end = attempt === null ? nowMs : endOf(attempt);
      const attempts = attemptsInCycle + (attempt === null ? 0 : 1);
      return { ...open, state: 'failed', reason, endedAtMs: end, attemptsInCycle: attempts, dueAtMs: null };
    }
    case 'held':
      return { ...open, state: 'held', attemptsInCycle, dueAtMs: null };
    case 'released':
      return { ...open, state: 'pending', attemptsInCycle, dueAtMs: nowMs };
    default:
      return report satisfies never;
  }
}

/** The failed attempt of a report that was under way when its delivery ended for another reason: it is kept too. */
export function attemptUnderWay(row: StandingRow, report: DeliveryReport): Attempt | undefined {
  const attempt = report.kind === 'retry' || report.kind === 'failed' ? report.attempt : null;
  if (attempt === null || (row.state !== 'failed' && row.state !== 'withdrawn')) return undefined;
  const isNext = attempt.cycle === row.cycle && attempt.number === row.attemptsInCycle + 1;
  return isNext ? attempt : undefined;
}
