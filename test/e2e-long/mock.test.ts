import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { DAY_MS } from '../../src/domain/values/date-time.ts';
import { makeCertificate } from '../support/certificate.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { ExampleProcess } from '../support/example-process.ts';
import { fetchAnswer } from '../support/fetch-answer.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { expectDocumentedAnswer } from '../support/openapi/validate.ts';
import { folder, fuelProcess, type RunningCommand, startFuel } from '../support/service/commands.ts';
import { until } from '../support/waiting.ts';

interface Shown {
  readonly base_url: string;
  readonly ca_file: string;
  readonly key: string;
  readonly webhook_secret: string;
  readonly control_url: string;
  readonly from: string;
  readonly transactions: number;
}

interface Sent {
  readonly transaction: number;
  readonly expected: string;
  readonly as_expected: boolean;
  readonly status: number | null;
  readonly error: string | null;
}

interface Started {
  readonly mock: RunningCommand;
  readonly shown: Shown;
  /** In place of the system's temporary folder. */
  readonly temporary: string;
}

async function startMock(...args: readonly string[]): Promise<Started> {
  const temporary = join(folder(), 'tmp');
  mkdirSync(temporary);
  const options = { dataDir: join(temporary, 'unused'), env: { TMPDIR: temporary } };
  const mock = startFuel(['mock', '--port', '0', '--json', ...args], options);
  await until(async () => mock.stdout().includes('\n'), 30_000);
  return { mock, shown: JSON.parse(mock.stdout()), temporary };
}

describe.skipIf(onServers)('fuel mock', () => {
  let started: Started;
  let shown: Shown;

  beforeAll(async () => {
    started = await startMock();
    shown = started.shown;
  }, 60_000);

  async function control(path: string, members: Record<string, string>): Promise<{ sent: Sent[] }> {
    const answer = await fetch(shown.control_url + path, {
      method: 'POST',
      body: new URLSearchParams(members),
    });
    return (await answer.json()) as { sent: Sent[] };
  }

  function syncInto(file: string, of = shown): Promise<string> {
    return new ExampleProcess('sync-client/sync-client.ts', {
      ...{ BASE_URL: of.base_url, API_KEY: of.key, FROM: of.from },
      ...{ NODE_EXTRA_CA_CERTS: of.ca_file, DATABASE: file },
    }).finished();
  }

  it('answers as docs/openapi.yaml describes, refusals included', async () => {
    const dispatcher = new Agent({ connect: { ca: readFileSync(shown.ca_file, 'utf8') } });
    const to = new Date(Date.parse(shown.from) + 30 * DAY_MS).toISOString();
    const range = `from=${shown.from}&to=${to}&limit=100`;
    const get = (query: string, key: string) =>
      fetchAnswer(`${shown.base_url}/transactions?${query}`, {
        ...{ method: 'GET', headers: { 'X-API-Key': key }, dispatcher },
      });
    for (const [query, key, status] of [
      [range, shown.key, 200],
      [range, 'svc_test_x', 401],
      ['from=x', shown.key, 400],
      [`${range}&corporate_id=1`, shown.key, 404],
    ] as const) {
      const answer = await get(query, key);
      expect(answer.status).toBe(status);
      expectDocumentedAnswer(answer);
    }
    await dispatcher.destroy();
  });

  it('sends each kind of webhook on demand; the example receiver accepts the good ones and refuses the others', async () => {
    const [cwd, port] = [folder(), await lastingPort()];
    const { cert, key } = await makeCertificate();
    writeFileSync(join(cwd, 'cert.pem'), cert);
    writeFileSync(join(cwd, 'key.pem'), key);
    const file = join(cwd, 'fuel.db');
    const receiver = new ExampleProcess('receiver/receiver.ts', {
      ...{ WEBHOOK_SECRET: shown.webhook_secret, PORT: `${port}`, DATABASE: file },
      ...{ TLS_CERT: join(cwd, 'cert.pem'), TLS_KEY: join(cwd, 'key.pem') },
    });
    await receiver.shows('listening');
    const url = `https://localhost:${port}/fuel-events`;
    const statuses: Record<string, (number | null)[]> = {};
    for (const kind of ['good', 'twice', 'unordered', 'retry', 'test', 'late', 'forged', 'changed']) {
      const { sent } = await control('/send', { kind, url });
      expect(sent.map(({ as_expected, error }) => [as_expected, error])).toEqual(
        sent.map(() => [true, null]),
      );
      statuses[kind] = sent.map(({ status }) => status);
    }
    expect(statuses).toEqual({
      ...{ good: [204], twice: [204, 204], unordered: [204, 204], retry: [204], test: [204] },
      ...{ late: [401], forged: [401], changed: [401] },
    });
    const stored = receiver.output.match(/: stored$/gm) ?? [];
    expect(stored.length).toBe(5);
    expect(receiver.output).toContain(': stored before\n');

    // What the webhooks brought is what a pull brings.
    await syncInto(file);
    const alone = join(cwd, 'alone.db');
    expect(await syncInto(alone)).toContain(`${shown.transactions} transactions pulled`);
    expect(recordsOf(file)).toEqual(recordsOf(alone));

    // A voided one vanishes from the next pull, which begins a month before now.
    const [newest = ''] = recordsOf(alone);
    await control('/void', { transaction: `${JSON.parse(newest).id}` });
    expect(await syncInto(alone)).toContain(' 0 new, 0 changed, 1 removed; ');
  }, 60_000);

  it('says that a receiver does not answer, and that one accepts what it should refuse', async () => {
    const url = `http://localhost:${await lastingPort()}/`;
    const { sent } = await control('/send', { kind: 'late', url });
    expect(sent).toMatchObject([
      { as_expected: false, status: null, error: expect.stringContaining('ECONNREFUSED') },
    ]);
  });

  it('serves the same transactions for the same seed, and others for another', async () => {
    const cwd = folder();
    const records: string[][] = [];
    for (const seed of ['5', '5', '6']) {
      const { mock, shown: other } = await startMock('--seed', seed, '--to', '2026-10-01T00:00:00Z');
      const file = join(cwd, `${records.length}.db`);
      await syncInto(file, other);
      records.push(recordsOf(file));
      mock.child.kill('SIGTERM');
      expect((await mock.result).code).toBe(0);
    }
    expect(records[0]?.length).toBeGreaterThan(1_900);
    expect(records[1]).toEqual(records[0]);
    expect(records[2]).not.toEqual(records[0]);
  }, 90_000);

  it('says that a port is taken, and leaves nothing', async () => {
    const { port } = new URL(shown.base_url);
    const temporary = join(folder(), 'tmp');
    mkdirSync(temporary);
    const env = { TMPDIR: temporary };
    const { code, stdout, stderr } = await fuelProcess(['mock', '--port', port], { dataDir: temporary, env });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^fuel: REFUSED: can't listen on 127\.0\.0\.1:\d+/);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('ends at Ctrl-C and leaves nothing', async () => {
    const { mock, temporary } = started;
    expect(readdirSync(temporary).filter((name) => name.startsWith('fuel-mock-')).length).toBe(1);
    mock.child.kill('SIGINT');
    expect(await mock.result).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(temporary)).toEqual([]);
    expect(existsSync(shown.ca_file)).toBe(false);
  });
});

function recordsOf(file: string): string[] {
  const ledger = new Ledger(file);
  const records = [...ledger.records()];
  ledger.close();
  return records;
}
