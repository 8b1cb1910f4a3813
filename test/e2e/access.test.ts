import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../support/fetch-answer.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { recordUnchecked } from '../support/transactions/record-unchecked.ts';
import { until } from '../support/waiting.ts';

describe('access in staging', () => {
  const service = new ServiceProcess();
  let key = '';
  let prefix = '';

  const pull = (by: string | undefined, headers = {}) =>
    service.get(`/transactions?${SEPTEMBER}`, { key: by, headers });
  const codeOf = ({ status, body }: Answer) => `${status} ${body.error?.code ?? ''}`.trim();
  const issue = async (account: string, ...args: string[]) =>
    (await service.done(['key', 'issue', account, '--json', '--wait', ...args])).json as {
      key: string;
      prefix: string;
    };

  beforeAll(async () => {
    await service.start();
    ({ key, prefix } = await openAccount(service));
  });

  it('leaves what a key was used for, refused requests too, and not what came with a wrong secret', async () => {
    const own = await openAccount(service, { id: 66 });
    await pull(own.key);
    await pull(`svc_test_${own.prefix}_${'a'.repeat(43)}`);
    await service.get(`/transactions?${SEPTEMBER}&corporate_id=5`, { key: own.key });
    await service.done(['key', 'off', own.prefix, '--wait']);
    await pull(own.key);
    const requests = async () => (await service.done(['key', 'requests', own.prefix, '--json'])).lines;
    await until(async () => (await requests()).length === 3);
    const range = { from: '2026-09-01T00:00:00.000Z', to: '2026-09-30T23:59:59.999Z' };
    const from = { at: expect.any(String), address: '127.0.0.1' };
    expect(await requests()).toMatchObject([
      { ...from, status: 401, code: 'INVALID_API_KEY', rows: null, from: null },
      { ...from, status: 404, code: 'CORPORATE_NOT_FOUND', rows: null, ...range, corporate_id: [5] },
      { ...from, status: 200, code: null, rows: 0, ...range, corporate_id: null, after: null },
    ]);
    const [newest] = await requests();
    expect(
      (await service.done(['key', 'requests', own.prefix, '--since', newest.at, '--json'])).lines,
    ).toEqual([newest]);
    const used = { last_used_at: newest.at, last_used_from: '127.0.0.1' };
    expect((await service.done(['key', 'list', '--account', '66', '--json'])).json).toMatchObject(used);
    expect((await service.done(['key', 'show', own.prefix, '--json'])).json).toMatchObject(used);
  });

  it('ends with an account that is closed, whose keys stay off when it is reopened', async () => {
    const own = await openAccount(service, { id: 88 });
    await service.done(['account', 'close', '88', '--reason', 'contract ended', '--wait']);
    expect(codeOf(await pull(own.key))).toBe('401 INVALID_API_KEY');
    const refused = await service.fuel(['key', 'on', own.prefix]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('fuel account reopen 88') });
    await service.done(['account', 'reopen', '88', '--reason', 'renewed', '--wait']);
    expect(codeOf(await pull(own.key))).toBe('401 INVALID_API_KEY');
    await service.done(['key', 'on', own.prefix]);
    await service.done(['account', 'integration', '88', 'on', '--wait']);
    expect(codeOf(await pull(own.key))).toBe('200');
  });

  it('ends with a key that is switched off, and returns with it, once --wait returns', async () => {
    for (const [verb, code] of [
      ['off', '401 INVALID_API_KEY'],
      ['on', '200'],
    ] as const) {
      await service.done(['key', verb, prefix, '--wait']);
      expect(codeOf(await pull(key))).toBe(code);
    }
  });

  it('is limited to 60 requests in a window per key, and a refusal says when to retry', async () => {
    const { key: limited } = await issue('7');
    const answers: Answer[] = [];
    for (let index = 0; index < 61; index++) answers.push(await pull(limited));
    expect(answers.slice(0, 60).map(({ status }) => status)).toEqual(Array(60).fill(200));
    const last = answers[60];
    expect(last?.status).toBe(429);
    expect(last?.text).toBe('{"error":{"code":"RATE_LIMITED"}}');
    expect(last?.headers['x-request-id']).toBeUndefined();
    expect(last?.headers['cache-control']).toBe('no-store');
    expect(last?.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(String(last?.headers['retry-after'])).toMatch(/^[1-9]\d?$/);
    expect(Number(last?.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(codeOf(await pull(key))).toBe('200');
    const guessed = `${limited.slice(0, -43)}${'a'.repeat(43)}`;
    expect(codeOf(await pull(guessed))).toBe('401 INVALID_API_KEY');
  });

  it('ends for the one account that has an event which cannot be read', async () => {
    const [unreadable, other] = [
      await openAccount(service, { id: 77 }),
      await openAccount(service, { id: 78 }),
    ];
    await recordUnchecked(service, 'account-77', { type: 'AccountGuessed', data: { account_id: 77 } });
    await until(async () => (await pull(unreadable.key)).status === 503);
    expect(codeOf(await pull(unreadable.key))).toBe('503 SERVICE_UNAVAILABLE');
    expect(codeOf(await pull(other.key))).toBe('200');
    expect((await service.ops('/readyz')).status).toBe(200);
    const { code, stderr } = await service.fuel(['account', 'integration', '77', 'off']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('AccountGuessed')]);
  });
});
