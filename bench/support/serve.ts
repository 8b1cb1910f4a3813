import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild } from './child.ts';

const FUEL = join(import.meta.dirname, '../../bin/fuel');
const MAX_WAIT_MS = 120_000;

export interface RunningServe extends Child {
  /** The base address of the pull API; empty without the role `api`. */
  readonly url: string;
  readonly opsUrl: string;
  /** The file with its log. */
  readonly logFile: string;
}

/** Starts `fuel serve` on free ports with default settings and its log in a file, and waits until it is ready. */
export async function startServe(options: {
  readonly dataDir: string;
  readonly roles?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}): Promise<RunningServe> {
  const logFile = join(options.dataDir, `serve-${++started}.log`);
  const child = startChild({
    command: FUEL,
    args: ['serve', ...(options.roles ?? []).flatMap((role) => ['--role', role])],
    env: {
      FUEL_DATA_DIR: options.dataDir,
      FUEL_LISTEN: '127.0.0.1:0',
      FUEL_OPS_LISTEN: '127.0.0.1:0',
      FUEL_STOP_DELAY: '0s',
      ...options.env,
    },
    outputFile: logFile,
  });
  const { api, ops } = await child.line(readListening);
  await untilReady(ops);
  return { ...child, url: api, opsUrl: ops, logFile };
}

/** The number of started processes, so that processes in one folder do not share a log file. */
let started = 0;

/** Waits until the service with this address for operators says that it is ready. */
export async function untilReady(opsUrl: string): Promise<void> {
  const deadline = Date.now() + MAX_WAIT_MS;
  while ((await fetch(`${opsUrl}/readyz`)).status !== 200) {
    if (Date.now() > deadline) throw new Error('fuel serve did not become ready');
    await sleep(50);
  }
}

function readListening(line: string): { api: string; ops: string } | undefined {
  const entry = JSON.parse(line) as { msg?: string; api?: string; ops?: string };
  const { msg, api, ops } = entry;
  return msg === 'listening' && ops !== undefined ? { api: api ?? '', ops } : undefined;
}
