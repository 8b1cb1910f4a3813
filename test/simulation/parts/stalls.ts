import type { Simulation } from '../simulation.ts';
import type { Customer } from './customers.ts';

const CALM_MS = 60_000;
/** Enough attempts for a process to learn that the receiver takes several at once. It forgets that after three seconds. */
const MANY = 20;
const ALL_TAKEN_MS = 1_500;
/** These are leased together, and their receiver is slow then: some attempts are under way when others have ended. */
const SOME = 8;

/**
 * Stalls the lease of some deliveries, as for the lock of a file or a slow server, so that it may have ended before it is
 * committed. The lease leaves nothing else that is due, so the same process could claim them again as soon as there is room
 * for another attempt, while some of the first attempts are under way.
 */
export async function stallLease(
  simulation: Simulation,
  { prefix, host }: Customer,
  record: (count: number) => Promise<void>,
): Promise<void> {
  const { timeline, receivers, stores } = simulation;
  const receiver = receivers.byHost.get(host ?? '');
  if (receiver === undefined || !simulation.isCalmFor(CALM_MS)) return;
  receiver.become('well', timeline.nowMs);
  await record(MANY);
  await timeline.pause(ALL_TAKEN_MS);
  simulation.stallsLease = ({ nowMs, chosen }) => {
    const waiting = stores.queue.due.filter(
      ({ owed, progress: { dueAtMs, leaseToken } }) =>
        owed.prefix === prefix && leaseToken === null && (dueAtMs ?? 0) <= nowMs,
    ).length;
    const stalls = waiting > 1 && waiting <= (chosen.get(prefix) ?? 0);
    if (stalls) {
      simulation.stallsLease = () => false;
      receiver.become('slow', timeline.nowMs);
    }
    return stalls;
  };
  await record(SOME);
  await timeline.pause(CALM_MS);
  simulation.stallsLease = () => false;
}
