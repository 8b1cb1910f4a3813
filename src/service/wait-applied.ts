import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { Coordination } from '../coordination/coordination.ts';
import { PROCESS_MAX_AGE_MS } from '../coordination/process-report.ts';
import { FuelError } from '../errors.ts';
import type { TransactionsView } from '../transactions/view/transactions-view.ts';

const MAX_WAIT_MS = 10_000;
const CHECK_EVERY_MS = 20;

export interface WaitOptions {
  readonly coordination: Coordination;
  readonly view: TransactionsView;
  readonly clock: Clock;
  /** Of the last event recorded. */
  readonly position: number;
}

/**
 * Waits until every live process has applied the log up to `position`: each directory, and the view if one of them is a
 * projector. Resolves with `no process` at once if no process is alive. Rejects with `REFUSED` after 10 s, naming the
 * processes that are behind.
 */
export async function waitUntilApplied(options: WaitOptions): Promise<'applied' | 'no process'> {
  const { coordination, clock } = options;
  if ((await coordination.live(PROCESS_MAX_AGE_MS)).length === 0) return 'no process';
  const deadlineMs = clock.now() + MAX_WAIT_MS;
  for (;;) {
    const behind = await processesBehind(options);
    if (behind.length === 0) return 'applied';
    if (clock.now() >= deadlineMs) {
      throw new FuelError(
        'REFUSED',
        `recorded, but after ${MAX_WAIT_MS / 1000} s not yet applied by ${behind.join(', ')}`,
      );
    }
    await sleep(CHECK_EVERY_MS);
  }
}

async function processesBehind({ coordination, view, position }: WaitOptions): Promise<string[]> {
  const processes = await coordination.live(PROCESS_MAX_AGE_MS);
  const behind = processes
    .filter((process) => (process.directoryPosition ?? -1) < position)
    .map((process) => `process ${process.pid} on ${process.host}`);
  if (processes.some((process) => process.roles.includes('projector'))) {
    const checkpoint = await view.checkpoint();
    if (checkpoint === undefined || checkpoint.position < position) behind.push('the projector');
  }
  return behind;
}
