import type { Simulation } from '../simulation.ts';
import type { Customer } from './customers.ts';

const CALM_MS = 60_000;
/** A claim ends after 5 s, and the report of a killed process after 6 s. Then another one works on the whole lane. */
const TAKEN_OVER_MS = 30_000;

/**
 * Kills a process in the middle of an attempt, while many transactions are recorded for a receiver that is well. It is a
 * violation if what the process had claimed is not taken over soon.
 */
export async function killInAttempt(
  simulation: Simulation,
  { prefix, host }: Customer,
  recordMany: () => Promise<void>,
): Promise<void> {
  const { timeline, stores, receivers, processes, plan } = simulation;
  const receiver = receivers.byHost.get(host ?? '');
  if (receiver === undefined || processes.length < plan.processes || !simulation.isCalmFor(CALM_MS)) return;
  receiver.become('well', timeline.nowMs);
  const before = receiver.seen.length;
  const recording = recordMany();
  for (let waits = 0; receiver.seen.length === before && waits < 500; waits++) await timeline.pause(5);
  const killedAtMs = timeline.nowMs;
  const sender = processes.find(({ name }) => name === receiver.seen[before]?.from);
  if (sender === undefined) return recording; // nothing is sent, since the account has no access or its webhook is off
  const claimed = stores.queue.due.filter(
    ({ owed, progress }) => owed.prefix === prefix && progress.leaseToken !== null,
  );
  simulation.end(sender, 'in the middle of an attempt');
  await recording;
  await timeline.pause(Math.max(0, killedAtMs + TAKEN_OVER_MS - timeline.nowMs));
  const isWell = receiver.goodMoods(killedAtMs, timeline.nowMs)?.join() === 'well';
  if (!isWell || !simulation.isCalmFor(timeline.nowMs - killedAtMs - 1)) return;
  for (const { owed, progress } of claimed)
    if (stores.queue.get(owed.id)?.progress.leaseToken === progress.leaseToken)
      simulation.violation(
        `transaction ${owed.transactionId} to ${prefix} is still claimed by a process that was killed`,
      );
}
