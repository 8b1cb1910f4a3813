import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Attack, Suffered } from './attacker.ts';

export interface RunningAttack {
  /** Returns its connections and answers so far. */
  suffered(): Promise<Suffered>;
  /** Closes its connections. */
  stop(): Promise<void>;
}

/** Starts an attack in a thread. */
export function startAttack(attack: Attack): RunningAttack {
  const worker = new Worker(join(import.meta.dirname, 'attacker.ts'), { workerData: attack, execArgv: [] });
  return {
    async suffered() {
      const answer = once(worker, 'message');
      worker.postMessage('suffered');
      const [suffered] = await answer;
      return suffered;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
