import { isDatedWrong } from '../judge/deliveries.ts';
import type { Simulation } from '../simulation.ts';

/** The time to repair the effects of a wrong clock, including the start of a process. */
const REPAIRED_WITHIN_MS = 60_000;

/** Sets a clock right, or slightly wrong. */
export function stepClock(simulation: Simulation): void {
  const process = simulation.processes[simulation.chance.int(simulation.plan.processes)];
  if (process === undefined) return; // it has just ended
  process.clockMs = simulation.chance.between(-1_000, 1_000);
  simulation.faultsAtMs.push(simulation.timeline.nowMs);
  simulation.history.add(process.name, `its clock is set to ${process.clockMs} ms`);
}

/** Makes a clock wrong by minutes, hours or months for a moment. Then it is set right, or its process dies first. */
export async function setWrong(
  simulation: Simulation,
  { aheadMs, forMs, dies }: { readonly aheadMs: number; readonly forMs: number; readonly dies: boolean },
): Promise<void> {
  const process = simulation.processes[simulation.chance.int(simulation.plan.processes)];
  if (process === undefined) return;
  const { clockMs } = process;
  const wrong = { fromMs: simulation.timeline.nowMs, untilMs: Number.POSITIVE_INFINITY };
  simulation.wrongTimes.push(wrong);
  simulation.faultsAtMs.push(simulation.timeline.nowMs);
  process.clockMs = clockMs + aheadMs;
  simulation.history.add(process.name, `its clock is wrong by ${aheadMs} ms`);
  await simulation.timeline.pause(forMs);
  if (dies) simulation.end(process, 'while its clock is wrong');
  process.clockMs = clockMs;
  simulation.history.add(process.name, 'its clock is right again');
  wrong.untilMs = simulation.timeline.nowMs;
  simulation.faultsAtMs.push(simulation.timeline.nowMs);
  await simulation.timeline.pause(REPAIRED_WITHIN_MS);
  if (simulation.isClockWrong() || !simulation.isCalmFor(REPAIRED_WITHIN_MS - 1)) return;
  for (const { owed, progress } of simulation.stores.queue.due)
    if (isDatedWrong(progress, simulation.timeline.nowMs))
      simulation.violation(
        `transaction ${owed.transactionId} is due at ${progress.dueAtMs}, long after it can be`,
      );
}
