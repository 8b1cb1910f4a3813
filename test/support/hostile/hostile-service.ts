import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { BASE_PATH } from '../../../src/pull/app.ts';
import type { Env } from '../service/commands.ts';
import { openForUse } from '../service/operator.ts';
import { ServiceProcess } from '../service/service-process.ts';
import { customersLines } from './customers.ts';
import { openSockets } from './open-sockets.ts';

export const PATH = `${BASE_PATH}/transactions?from=2026-09-01T00:00:00Z&to=2026-09-30T00:00:00Z`;

/** Starts a service with a good customer and some others, all of whom have a full page. */
export async function hostileService({
  env = {},
  keys = 0,
  rateLimit = 60,
}: {
  readonly env?: Env;
  readonly keys?: number;
  readonly rateLimit?: number;
} = {}) {
  const service = await new ServiceProcess({ env }).start();
  onTestFinished(async () => void (await service.stop()));
  const { operator, pid, port } = service;
  const { key: good } = await operator.provision(7, openForUse(7));
  const bad: string[] = [];
  for (let number = 1; number <= keys; number++)
    bad.push((await operator.provision(100 + number, openForUse(100 + number), { rateLimit })).key);
  await operator.import(customersLines([7, ...bad.map((_, index) => 101 + index)]), { wait: true });
  return {
    good,
    bad,
    port,
    url: `https://127.0.0.1:${port}${PATH}`,
    sockets: () => openSockets(pid),
    /** The memory of the process that is resident, in MB. */
    residentMb: () =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_000,
  };
}
