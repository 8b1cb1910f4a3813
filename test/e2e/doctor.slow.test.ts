import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { folder, fuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { closedPort } from '../support/tcp-server.ts';
import { confirmed, importEvents, openAccount } from '../support/transactions/e2e-samples.ts';

const CHECKS = [
  'configuration',
  'data-directory',
  'disk-space',
  'certificate',
  'mail-server',
  'store',
  'proof',
  'master-keys',
  'parked-events',
  'consumers',
  'lag',
  'former-views',
  'contacts',
  'webhooks',
  'overdue',
  'accounts',
];

const CHECK_OF: Readonly<Record<string, string>> = { EVENTSTORE_URL: 'event-store', MONGODB_URL: 'mongodb' };

interface Line {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly do: string | null;
}

async function doctor(dataDir: string, env: Readonly<Record<string, string>> = {}) {
  const result = await fuel(['doctor', '--json'], { dataDir, env });
  const lines = result.lines as Line[];
  const engines = Object.keys(env).flatMap((setting) => CHECK_OF[setting] ?? []);
  if (!onServers)
    expect(lines.map(({ check }) => check).toSorted()).toEqual([...CHECKS, ...engines].toSorted());
  for (const line of lines) {
    expect(Object.keys(line)).toEqual(['check', 'ok', 'detail', 'do']);
    expect(line.do === null).toBe(line.ok);
  }
  expect(result.stderr).toBe('');
  const wrong = lines.filter(({ ok }) => !ok).map(({ check }) => check);
  expect(result.code).toBe(wrong.length === 0 ? 0 : 1);
  const of = (name: string) => lines.find(({ check }) => check === name);
  return { code: result.code, stdout: result.stdout, wrong, of };
}

/** Returns every file of the folder with its content. */
function contentOf(path: string): Record<string, string> {
  const names = readdirSync(path).toSorted();
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(path, name)))
        .digest('hex'),
    ]),
  );
}

describe('fuel doctor', () => {
  const service = new ServiceProcess();

  it('finds nothing wrong where nothing was started yet, and makes nothing', async () => {
    const dataDir = join(folder(), 'data');
    const { wrong, of } = await doctor(dataDir);
    expect(wrong).toEqual([]);
    expect(of('data-directory')?.detail).toContain('does not exist yet');
    if (!onServers) expect(of('store')?.detail).toBe('there is no store yet');
    expect(existsSync(dataDir)).toBe(false);
  });

  it('finds nothing wrong with a service that runs, and what is wrong once it has ended', async () => {
    await service.start();
    await openAccount(service);
    await service.done(['account', 'corporate', '7', '31', '--name', 'North Depot', '--wait']);
    await importEvents(service, [confirmed(501)]);
    const running = await doctor(service.dataDir);
    expect(running.wrong).toEqual([]);
    expect(running.of('consumers')?.detail).toMatch(/transactions: \S+; deliveries: \S+; notices: \S+/);
    await service.stop();
    const before = contentOf(service.dataDir);
    const ended = await doctor(service.dataDir);
    expect(ended.wrong).toEqual(['consumers']);
    expect(ended.of('consumers')?.do).toContain('fuel serve');
    expect(contentOf(service.dataDir)).toEqual(before);
  });

  it('works with an invalid configuration, and checks what can be checked', async () => {
    const env = { FUEL_TLS: 'maybe', FUEL_LISTEN: 'here', EVENTSTORE_URL: 'http://nowhere' };
    const { wrong, of } = await doctor(join(folder(), 'data'), env);
    expect(wrong).toEqual(['configuration']);
    for (const name of ['FUEL_TLS', 'FUEL_LISTEN', 'EVENTSTORE_URL'])
      expect(of('configuration')?.detail).toContain(`${name}: `);
    expect(of('certificate')).toMatchObject({ ok: true, detail: 'not checked: FUEL_TLS is not valid' });
    expect(of('event-store')).toMatchObject({ ok: true, detail: 'not checked: EVENTSTORE_URL is not valid' });
    expect(of('disk-space')?.ok).toBe(true);
  });

  it('says which engine cannot be reached, in some seconds, and no password', async () => {
    const port = await closedPort();
    const env = {
      EVENTSTORE_URL: `esdb://user:first-word@127.0.0.1:${port}?tls=false`,
      MONGODB_URL: `mongodb://user:second-word@127.0.0.1:${port}/?replicaSet=rs0`,
      FUEL_SMTP_URL: `smtp://user:third-word@127.0.0.1:${port}`,
    };
    const startMs = performance.now();
    const { wrong, of, stdout } = await doctor(join(folder(), 'data'), env);
    expect(performance.now() - startMs).toBeLessThan(30_000);
    expect(wrong.toSorted()).toEqual(['event-store', 'mail-server', 'mongodb']);
    expect(of('lag')?.detail).toBe('not checked, because event-store and mongodb are wrong');
    expect(of('event-store')?.do).toBe('start EventStoreDB or KurrentDB, or correct EVENTSTORE_URL');
    expect(of('mongodb')?.do).toBe('start MongoDB, or correct MONGODB_URL');
    expect(of('configuration')?.ok).toBe(true);
    expect(stdout).not.toMatch(/first-word|second-word|third-word/);
  });
});
