import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
  voided,
} from '../support/transactions/e2e-samples.ts';
import { recordUnchecked } from '../support/transactions/record-unchecked.ts';
import { until } from '../support/waiting.ts';

const COUNT = 3_000;

describe('fuel projection', () => {
  const service = new ServiceProcess();
  let key = '';

  const status = async () => (await service.done(['projection', 'status', '--json'])).lines;
  const pull = (query: string) => service.get(`/transactions?${query}`, { key });

  const record = (stream: string, event: { type: string; data: unknown }) =>
    recordUnchecked(service, stream, event);

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await importEvents(service, minutely(COUNT));
  });

  it('status shows how far the view and the groups are, and which process works on each', async () => {
    await until(async () => (await status()).every(({ lag_events }) => lag_events === 0), 10_000);
    const [line, ...groups] = await status();
    for (const group of groups) {
      expect(Object.keys(group)).toEqual(Object.keys(line));
      expect(group).toMatchObject({ lag_seconds: 0, lag_events: 0, parked: 0, holder: line.holder });
    }
    expect(groups.map(({ name }) => name)).toEqual(['deliveries', 'notices']);
    expect(Object.keys(line)).toEqual(['name', 'position', 'lag_seconds', 'lag_events', 'parked', 'holder']);
    expect(line).toMatchObject({ name: 'transactions', lag_seconds: 0, lag_events: 0, parked: 0 });
    expect(line.position).toBeGreaterThanOrEqual(COUNT);
    expect(line.holder).toEqual(expect.any(String));
  });

  it('parks a bad event with position and reason, and continues with the next', async () => {
    await record('transaction-700001', { type: 'TransactionGuessed', data: { transaction_id: 700001 } });
    await record('transaction-700002', confirmed(700002, { fuel: null }));
    await record('transaction-700003', { type: 'TransactionConfirmed', data: 'not json' });
    await importEvents(service, [confirmed(700004, { created_at: '2026-08-03T00:00:00Z' })]);
    const august = await pull('from=2026-08-01T00:00:00Z&to=2026-08-30T00:00:00Z');
    expect(idsOf(august.body)).toEqual([700004]);
    const { lines } = await service.done(['projection', 'parked', '--json']);
    expect(lines.map(({ stream, type }) => `${stream} ${type}`)).toEqual([
      'transaction-700001 TransactionGuessed',
      'transaction-700002 TransactionConfirmed',
      'transaction-700003 TransactionConfirmed',
    ]);
    for (const { position, reason } of lines) {
      expect(position).toBeGreaterThan(COUNT);
      expect(reason).toMatch(/\w{3,}/);
    }
    expect((await status())[0].parked).toBe(3);
    const shown = await service.done(['projection', 'parked', 'show', String(lines[1].position), '--json']);
    expect(shown.json).toMatchObject({ stream: 'transaction-700002', data: { transaction_id: 700002 } });
  });

  it('parked retry applies again, and says what stays parked', async () => {
    const { lines } = await service.done(['projection', 'parked', '--json']);
    const one = await service.fuel(['projection', 'parked', 'retry', String(lines[0].position), '--json']);
    expect([one.code, one.json]).toEqual([1, { retried: 1, still_parked: 1 }]);
    const all = await service.fuel(['projection', 'parked', 'retry', '--all', '--json', '--actor', 'Ada']);
    expect([all.code, all.json]).toEqual([1, { retried: 3, still_parked: 3 }]);
    const retried = await service.done(['audit', '--json', '--type', 'ParkedRetried']);
    expect(retried.lines.at(-1)).toMatchObject({ stream: 'operations', actor: 'Ada' });
  });

  it.each([
    [1, ['parked', 'show', '1']],
    [1, ['parked', 'retry', '1']],
    [2, ['parked', 'retry']],
    [2, ['parked', 'retry', '1', '--all']],
    [2, ['parked', 'show', 'x']],
    [2, ['rebuild']],
    [2, ['rebuild', 'everything']],
  ])('ends with %i for: projection %j', async (exit, args) => {
    const { code, stdout, stderr } = await service.fuel(['projection', ...args]);
    expect([code, stdout]).toEqual([exit, '']);
    expect(stderr).toMatch(/\w{3,}/);
  });

  it('rebuild makes the same view again while the service runs, and never serves a part of it', async () => {
    const before = (await pull(`${SEPTEMBER}&limit=100`)).body;
    const rebuilding = service.fuel([
      'projection',
      'rebuild',
      'transactions',
      '--json',
      '--actor',
      'Ada',
      '--wait',
    ]);
    let ended = false;
    void rebuilding.then(() => {
      ended = true;
    });
    while (!ended) {
      const { status: code, body, headers } = await pull(`${SEPTEMBER}&limit=100`);
      if (code === 503) {
        expect(body.error).toMatchObject({
          code: 'SERVICE_UNAVAILABLE',
          request_id: headers['x-request-id'],
        });
        expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
      } else {
        expect(code).toBe(200);
        expect(idsOf(body)).toEqual(idsOf(before));
      }
    }
    const { code, stderr } = await rebuilding;
    expect([code, stderr]).toEqual([0, '']);
    expect(idsOf((await pull(`${SEPTEMBER}&limit=100`)).body)).toEqual(idsOf(before));
    const rebuilt = await service.done(['audit', '--json', '--type', 'ViewRebuilt']);
    expect(rebuilt.lines).toMatchObject([{ stream: 'operations', actor: 'Ada' }]);
  });

  it('closes only the account that has an event which can not be read', async () => {
    const other = await openAccount(service, { id: 8 });
    await record('account-7', { type: 'AccountGuessed', data: { account_id: 7 } });
    await until(async () => (await pull(SEPTEMBER)).status === 503, 15_000);
    expect((await pull(SEPTEMBER)).body.error.code).toBe('SERVICE_UNAVAILABLE');
    expect((await service.get(`/transactions?${SEPTEMBER}`, { key: other.key })).status).toBe(200);
    expect((await service.ops('/readyz')).status).toBe(200);
    const { code, stderr } = await service.fuel(['account', 'integration', '7', 'off']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('AccountGuessed')]);
    expect((await service.done(['account', 'list', '--json'])).lines).toHaveLength(2);
  });

  it('keeps a withdrawal that comes before its record final', async () => {
    await record('transaction-800001', voided(800001, { account_id: 8 }));
    await record('transaction-800001', confirmed(800001, { account_id: 8 }));
    await importEvents(service, [confirmed(800002, { account_id: 8 })]);
    const { json } = await service.done(['transaction', 'show', '800001', '--json']);
    expect(json.visible).toBe(false);
  });
});
