import { isDatedWrong } from '../judge/deliveries.ts';
import type { Simulation } from '../simulation.ts';

/** Returns when the next stored thing is due. */
export function nextDueMs(simulation: Simulation): number {
  const { nowMs } = simulation.timeline;
  let nextMs = Number.POSITIVE_INFINITY;
  simulation.readLog();
  const { model } = simulation;
  for (const { owed, progress } of simulation.stores.queue.due) {
    const account = model.keyOf(owed.prefix)?.account;
    if (account !== undefined && !model.hasAccess(account, nowMs)) continue; // it is held
    nextMs = Math.min(nextMs, isDatedWrong(progress, nowMs) ? nowMs : (progress.dueAtMs ?? nextMs));
  }
  for (const { messages } of simulation.stores.groups.groups.values())
    for (const { state, dueAtMs } of messages.values())
      if (state !== 'parked') nextMs = Math.min(nextMs, dueAtMs);
  for (const { profiles } of model.accounts.values())
    for (const { fromMs, toMs } of profiles.values())
      for (const atMs of [fromMs, toMs]) if (atMs > nowMs) nextMs = Math.min(nextMs, atMs);
  return nextMs;
}
