import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { claimPort, listen } from '../../../src/base/listen.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/threads.ts';
import { MAX_UNPROVEN_KEYS } from '../../../src/pull/admission.ts';
import { windowsMemory } from '../../../src/pull/edge/rate-windows/memory.ts';
import { connectionsMemory } from '../../../src/pull/server/connection-gate.ts';
import { furtherApiThreads } from '../../../src/service/api/start-api.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { Standing } from '../../../src/service/ops/standing.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const config = (threads: string) =>
  loadConfig(
    { FUEL_DATA_DIR: temporaryFolder(), FUEL_API_THREADS: threads, FUEL_LOG_LEVEL: 'silent' },
    'command',
  );

/** Starts a further API thread on this port. */
async function start(port: number, own = config('2')) {
  const moved: number[] = [];
  const metrics = createMetrics();
  const standing = new Standing();
  const pem = await testCertificate();
  const host = { entry: THREAD_ENTRY, config: own, holder: 'this' };
  const shared = {
    windows: { keys: windowsMemory(), unproven: windowsMemory(MAX_UNPROVEN_KEYS) },
    connections: connectionsMemory(),
    ticketKeys: randomBytes(48),
  };
  const thread = startJob(host, {
    ...{ job: 'api', name: 'api-2', log: { role: 'api', thread: 'api-2' } },
    data: {
      place: { host: '127.0.0.1', port },
      pem,
      shared,
      directory: undefined,
      standing: standing.memory,
    },
    memory: { youngMb: 12, oldMb: 768 },
    onMoved: (position) => void moved.push(position),
    onMetrics: (counted) => metrics.take('api-2', counted),
  });
  onTestFinished(() => thread.stop());
  await Promise.race([thread.failed, thread.listening]);
  return { thread, moved, metrics, standing, pem };
}

const freePort = async () => (await claimPort({ host: '127.0.0.1', port: 0 })).port;

describe('the number of API threads', () => {
  test('is the setting, the main thread included', () => {
    expect(furtherApiThreads(config('1'), memoryLog([]), true)).toEqual([]);
    expect(furtherApiThreads(config('3'), memoryLog([]), true)).toEqual(['api-2', 'api-3']);
  });

  test('is one where threads can not share a port, which one line of the log says', () => {
    const lines: Record<string, unknown>[] = [];
    expect(furtherApiThreads(config('3'), memoryLog(lines), false)).toEqual([]);
    expect(lines).toMatchObject([
      {
        level: 40,
        threads: 3,
        msg: 'this platform can not share a port among threads: one thread answers the API',
      },
    ]);
  });

  test('is never 0, and at most 128', () => {
    for (const text of ['0', '129', '-1', '1.5', 'all'])
      expect(() => config(text)).toThrow('FUEL_API_THREADS');
    expect(config('128').FUEL_API_THREADS).toBe(128);
  });
});

describe('a further API thread', () => {
  test('reports where its directory is, and is ready when it may judge access', async () => {
    const { thread, moved } = await start(await freePort());
    await until(async () => moved.length > 0, 5_000);
    expect(moved[0]).toEqual(expect.any(Number));
    await until(async () => thread.missing === undefined, 5_000);
  });

  test('that can not listen ends the start with its reason', async () => {
    const taken = createServer();
    onTestFinished(() => void taken.close());
    const { port } = await listen(taken, { host: '127.0.0.1', port: 0 });
    await expect(start(port)).rejects.toThrow(`can't listen on 127.0.0.1:${port}`);
  });

  test('has reported its last request when it has stopped, and the process shows the sum of all threads', async () => {
    const port = await freePort();
    const { thread, metrics, pem } = await start(port);
    const agent = new Agent({ connect: { ca: pem.cert } });
    onTestFinished(() => agent.destroy());
    const { statusCode, body } = await request(`https://127.0.0.1:${port}/`, { dispatcher: agent });
    await body.dump();
    expect(statusCode).toBe(404);
    await thread.stop();
    metrics.requests.inc({ status: 404, code: 'NOT_FOUND' });
    expect(await metrics.text()).toMatch(/^fuel_http_requests_total\{.*status="404".*\} 2$/m);
  });

  test('whose directory fails ends the API with its error', async () => {
    const own = config('2');
    const { thread } = await start(await freePort(), own);
    const db = new DatabaseSync(join(own.FUEL_DATA_DIR, 'events.db'));
    db.exec('ALTER TABLE events RENAME TO gone');
    db.close();
    await expect(thread.failed).rejects.toThrow(/events/);
  });

  test('that fails ends the API with its error', async () => {
    const { thread } = await start(await freePort());
    thread.tell({ cert: 'no certificate', key: 'no key' });
    await expect(thread.failed).rejects.toThrow(/PEM/);
  });
});
