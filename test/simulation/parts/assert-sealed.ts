import type { Simulation } from '../simulation.ts';
import type { Changes } from './changes.ts';

const SEALED_WITHIN_MS = 75_000;

/**
 * Checks that the log is what was sealed, and soon sealed completely. The active sealer may have changed meanwhile.
 */
export async function assertSealed(simulation: Simulation, changes: Changes, triesLeft = 3): Promise<void> {
  const { operator, stores, timeline } = simulation;
  const sinceMs = timeline.nowMs - SEALED_WITHIN_MS;
  const proven = await changes.certainly('prove', () => operator.prove());
  if (proven.kind !== 'done') return void simulation.violation(`the log cannot be proven: ${proven.kind}`);
  const { fault, size, sealedSize } = proven.value;
  if (fault !== undefined) simulation.violation(`the log is not what was sealed: ${JSON.stringify(fault)}`);
  const recent = stores.log.after(0).filter(({ recordedAtMs }) => recordedAtMs > sinceMs).length;
  if (size - sealedSize <= recent + 1) return;
  if (triesLeft === 0)
    return void simulation.violation(`${size - sealedSize} events are not sealed, and ${recent} are new`);
  await timeline.pause(SEALED_WITHIN_MS);
  await assertSealed(simulation, changes, triesLeft - 1);
}
