import { chmodSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandResult } from '../support/service/command-result.ts';
import { type Env, folder, fuel, startFuel } from '../support/service/commands.ts';
import { confirmed, type EventLine, linesOf } from '../support/transactions/e2e-samples.ts';

const READY_WITHIN_MS = 15_000;
const ENDS_WITHIN_MS = 30_000;

/** Makes a data folder with account 7, a key and transaction 1, on which a service has run. */
export async function preparedFolder(): Promise<string> {
  const dataDir = join(folder(), 'data');
  await done(dataDir, ['account', 'open', '7', '--name', 'Seven']);
  await done(dataDir, ['key', 'issue', '7']);
  await imported(dataDir, [confirmed(1)]);
  const { isReady, ended } = await served(dataDir);
  if (!isReady || ended.code !== 0) throw new Error(`the service ended with ${ended.code}`);
  return dataDir;
}

export async function done(dataDir: string, args: readonly string[], stdin?: string): Promise<void> {
  const { code, stderr } = await fuel(args, { dataDir, stdin });
  if (code !== 0) throw new Error(stderr);
}

export function imported(dataDir: string, lines: readonly EventLine[]): Promise<void> {
  return done(dataDir, ['transaction', 'import', '-'], linesOf(lines));
}

/** Makes a copy that only its owner may use. */
export function copyOf(dataDir: string): string {
  const copy = join(folder(), 'data');
  cpSync(dataDir, copy, { recursive: true });
  chmodSync(copy, 0o700);
  return copy;
}

/**
 * Starts it until it is ready, ends or is late, then stops it. If it does not stop, it is killed and its code is
 * `null`.
 */
export async function served(
  dataDir: string,
  env: Env = {},
  readyWithinMs = READY_WITHIN_MS,
): Promise<{ readonly isReady: boolean; readonly ended: CommandResult }> {
  const { child, result, stdout } = startFuel(['serve'], { dataDir, env });
  const deadlineMs = performance.now() + readyWithinMs;
  let isReady = false;
  while (!isReady && child.exitCode === null && performance.now() < deadlineMs) {
    const ops = /"ops":"([^"]+)"/.exec(stdout())?.[1];
    if (ops !== undefined) isReady = (await fetch(`${ops}/readyz`).catch(() => undefined))?.status === 200;
    await sleep(20);
  }
  if (isReady) await sleep(300); // it may find faults while it works
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS);
  const ended = await result;
  clearTimeout(kill);
  return { ended, isReady };
}
