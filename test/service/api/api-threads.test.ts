import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/base/config/config.ts';
import { claimPort, listen } from '../../../src/base/listen.ts';
import { ApiThreads, furtherApiThreads, sharedApi } from '../../../src/service/api/api-threads.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { Standing } from '../../../src/service/ops/standing.ts';
import { memoryLog, testCertificate } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const config = (threads: string) =>
  loadConfig(
    { FUEL_DATA_DIR: temporaryFolder(), FUEL_API_THREADS: threads, FUEL_LOG_LEVEL: 'silent' },
    'command',
  );

function threads() {
  const moved: [string, number][] = [];
  const metrics = createMetrics();
  const standing = new Standing();
  const started = new ApiThreads({
    config: config('2'),
    names: ['api-2'],
    standing,
    directory: undefined,
    metrics,
    onMoved: (...move) => moved.push(move),
  });
  onTestFinished(() => started.stop());
  return { started, moved, metrics, standing };
}

const rest = async (port: number) => ({
  address: { host: '127.0.0.1', port },
  pem: await testCertificate(),
  shared: sharedApi(),
});

describe('the number of API threads', () => {
  const canShare = async () => true;

  test('is the setting, the main thread included', async () => {
    expect(await furtherApiThreads(config('1'), memoryLog([]), canShare)).toEqual([]);
    expect(await furtherApiThreads(config('3'), memoryLog([]), canShare)).toEqual(['api-2', 'api-3']);
  });

  test('is one where threads can not share a port, which one line of the log says', async () => {
    const lines: Record<string, unknown>[] = [];
    expect(await furtherApiThreads(config('3'), memoryLog(lines), async () => false)).toEqual([]);
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
    const standing = new Standing();
    const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
    const moved: unknown[] = [];
    const started = new ApiThreads({
      ...{ config: config('2'), names: ['api-2'], standing, directory: undefined, metrics: createMetrics() },
      onMoved: (...move) => moved.push(move),
    });
    onTestFinished(() => started.stop());
    await started.start(await rest(port));
    await until(async () => moved.length > 0, 5_000);
    expect(moved[0]).toEqual(['api-2', expect.any(Number)]);
    await until(async () => started.areReady, 5_000);
    standing.stopping();
    await until(async () => !started.areReady, 5_000);
  });

  test('that can not listen ends the start with its reason', async () => {
    const taken = createServer();
    onTestFinished(() => void taken.close());
    const { port } = await listen(taken, { host: '127.0.0.1', port: 0 });
    const { started } = threads();
    await expect(started.start(await rest(port))).rejects.toThrow(`can't listen on 127.0.0.1:${port}`);
  });

  test('has reported its last request when it has stopped', async () => {
    const { started, metrics, standing } = threads();
    standing.stopping(); // requests are answered with 503
    const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
    const { pem, ...others } = await rest(port);
    await started.start({ pem, ...others });
    const agent = new Agent({ connect: { ca: pem.cert } });
    onTestFinished(() => agent.destroy());
    const { statusCode, body } = await request(`https://127.0.0.1:${port}/`, { dispatcher: agent });
    await body.dump();
    expect(statusCode).toBe(503);
    await started.stop();
    expect(await metrics.registry.metrics()).toMatch(/^fuel_http_requests_total\{.*status="503".*\} 1$/m);
  });

  test('whose directory fails ends the API with its error', async () => {
    const own = config('2');
    const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
    const started = new ApiThreads({
      ...{ config: own, names: ['api-2'], standing: new Standing(), directory: undefined },
      ...{ metrics: createMetrics(), onMoved: () => undefined },
    });
    onTestFinished(() => started.stop());
    await started.start(await rest(port));
    const db = new DatabaseSync(join(own.FUEL_DATA_DIR, 'events.db'));
    db.exec('ALTER TABLE events RENAME TO gone');
    db.close();
    await expect(started.failed).rejects.toThrow(/events/);
  });

  test('that fails ends the API with its error', async () => {
    const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
    const { started } = threads();
    await started.start(await rest(port));
    started.reload({ cert: 'no certificate', key: 'no key' });
    await expect(started.failed).rejects.toThrow(/PEM/);
  });
});
