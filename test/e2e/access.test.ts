import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../support/fetch-answer.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const NO_LIMIT = ['--rate-limit', '100000'];

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

  it('is granted to a known and active key from any address', async () => {
    const answer = await pull(key, { 'X-Forwarded-For': '198.51.100.1' });
    expect(codeOf(answer)).toBe('200');
    expect(answer.headers['x-access-expires-at']).toBeUndefined();
  });

  it.each<[string, () => string | undefined]>([
    ['no key', () => undefined],
    ['an empty key', () => ''],
    ['a key of no form', () => 'secret'],
    ['an unknown prefix', () => `svc_test_zzzzzzzzzz_${'a'.repeat(43)}`],
    ['a wrong secret', () => `svc_test_${prefix}_${'a'.repeat(43)}`],
    ['a prefix alone', () => `svc_test_${prefix}`],
    ['a longer secret', () => `${key}a`],
    ['a secret in other case', () => key.slice(0, -1) + swapCase(key.slice(-1))],
    ['the other environment’s form', () => key.replace('svc_test_', 'svc_live_')],
  ])('is refused with 401 to %s, always with the same answer', async (_name, presented) => {
    const answer = await pull(presented());
    const { code, message, request_id: id, ...rest } = answer.body.error;
    expect([answer.status, code, rest]).toEqual([401, 'INVALID_API_KEY', {}]);
    expect(message).toBe((await pull(undefined)).body.error.message);
    expect(id).toBe(answer.headers['x-request-id']);
  });

  it('leaves what a key was used for, refused requests too, and not what came with a wrong secret', async () => {
    const own = await openAccount(service, { id: 66 });
    await pull(own.key);
    await pull(`svc_test_${own.prefix}_${'a'.repeat(43)}`);
    await service.get(`/transactions?${SEPTEMBER}&corporate_id=5`, { key: own.key });
    await service.done(['key', 'off', own.prefix, '--wait']);
    await pull(own.key);
    const requests = async () => (await service.done(['key', 'requests', own.prefix, '--json'])).lines;
    await until(async () => (await requests()).length === 3, 5_000);
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

  it('needs the integration, then a charging profile that is current', async () => {
    await service.done(['account', 'open', '9', '--name', 'Nine']);
    const { key: nine } = await issue('9', ...NO_LIMIT);
    expect(codeOf(await pull(nine))).toBe('403 API_INTEGRATION_NOT_ENABLED');
    await service.done(['account', 'integration', '9', 'on', '--wait']);
    expect(codeOf(await pull(nine))).toBe('403 NO_ACTIVE_CHARGING_PROFILE');
    const profile = ['account', 'profile', '9', '--wait', '--profile'];
    await service.done([...profile, 'old', '--from', '2020-01-01T00:00:00Z', '--to', '2021-01-01T00:00:00Z']);
    await service.done([...profile, 'next', '--from', '2099-01-01T00:00:00Z']);
    expect(codeOf(await pull(nine))).toBe('403 NO_ACTIVE_CHARGING_PROFILE');
    await service.done([...profile, 'now', '--from', '2020-01-01T00:00:00Z', '--to', '2098-01-01T00:00:00Z']);
    const answer = await pull(nine);
    expect([codeOf(answer), answer.headers['x-access-expires-at']]).toEqual([
      '200',
      '2098-01-01T00:00:00.000Z',
    ]);
    await service.done([
      ...profile,
      'longer',
      '--from',
      '2020-01-01T00:00:00Z',
      '--to',
      '2098-06-01T00:00:00Z',
    ]);
    expect((await pull(nine)).headers['x-access-expires-at']).toBe('2098-06-01T00:00:00.000Z');
    await service.done(['account', 'integration', '9', 'off', '--wait']);
    expect(codeOf(await pull(nine))).toBe('403 API_INTEGRATION_NOT_ENABLED');
  });

  it('ends at exactly the moment that the charging profile ends', async () => {
    const { key: ten } = await openAccount(service, { id: 10 });
    const endMs = Date.now() + 1_500;
    const end = new Date(endMs).toISOString();
    const shorter = {
      type: 'SetChargingProfile',
      accountId: 10,
      profile: 'basic',
      fromMs: 0,
      toMs: endMs,
    } as const;
    await service.operator.change(10, shorter);
    const answers: string[] = [];
    for (let sentMs = 0; sentMs < endMs; ) {
      sentMs = Date.now();
      const answer = await pull(ten);
      const receivedMs = Date.now();
      const code = codeOf(answer);
      answers.push(code);
      if (receivedMs < endMs) expect([code, answer.headers['x-access-expires-at']]).toEqual(['200', end]);
      if (sentMs >= endMs) expect(code).toBe('403 NO_ACTIVE_CHARGING_PROFILE');
      await sleep(20);
    }
    expect(new Set(answers)).toEqual(new Set(['200', '403 NO_ACTIVE_CHARGING_PROFILE']));
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

  it('counts every request that passes the edge, whatever its outcome, and limits it before further checks', async () => {
    const { key: limited, prefix: its } = await issue('7', '--rate-limit', '4');
    expect(codeOf(await service.get('//nowhere', { key: limited }))).toBe('404 NOT_FOUND');
    expect(codeOf(await service.get('/transactions', { key: limited, method: 'POST' }))).toBe(
      '405 METHOD_NOT_ALLOWED',
    );
    expect(codeOf(await service.get('/transactions', { key: limited }))).toBe('400 VALIDATION_FAILED');
    await service.done(['key', 'off', its, '--wait']);
    expect(codeOf(await pull(limited))).toBe('401 INVALID_API_KEY');
    expect(codeOf(await pull(limited))).toBe('429 RATE_LIMITED');
    expect(codeOf(await service.get('//nowhere', { key: limited }))).toBe('429 RATE_LIMITED');
    await service.done(['key', 'rate-limit', its, '5', '--wait']);
    expect(codeOf(await pull(limited))).toBe('401 INVALID_API_KEY');
    expect(codeOf(await pull(limited))).toBe('429 RATE_LIMITED');
  });

  it('does not let a caller that knows only a prefix use up the key’s window', async () => {
    const { key: limited, prefix: its } = await issue('7', '--rate-limit', '2');
    for (let index = 0; index < 5; index++) {
      const secret = `${index}`.repeat(43);
      expect(codeOf(await pull(`svc_test_${its}_${secret}`))).toBe('401 INVALID_API_KEY');
    }
    expect(codeOf(await pull(limited))).toBe('200');
  });
});

function swapCase(letter: string): string {
  const upper = letter.toUpperCase();
  return /\d/.test(letter) ? 'x' : upper === letter ? letter.toLowerCase() : upper;
}
