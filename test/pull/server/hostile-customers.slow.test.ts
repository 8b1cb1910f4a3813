import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { BASE_PATH } from '../../../src/pull/app.ts';
import { freshDatabase, mongodbUrl } from '../../support/engines/mongodb.ts';
import { freshSchema, postgresUrl } from '../../support/engines/postgresql/postgresql.ts';
import { startAttack } from '../../support/hostile/attack.ts';
import { goodCustomer, type Served } from '../../support/hostile/good-customer.ts';
import { hostileService, PATH } from '../../support/hostile/hostile-service.ts';
import type { Env } from '../../support/service/commands.ts';
import { until } from '../../support/waiting.ts';

const ENGINES: readonly { title: string; isThere: boolean; env: () => Env }[] = [
  {
    title: 'PostgreSQL',
    isThere: inject('postgresUrl') !== undefined,
    env: () => ({ POSTGRES_URL: postgresUrl(), FUEL_POSTGRES_SCHEMA: freshSchema() }),
  },
  {
    title: 'MongoDB',
    isThere: inject('mongodbUrl') !== undefined,
    env: () => ({ MONGODB_URL: mongodbUrl(), MONGODB_DATABASE: freshDatabase() }),
  },
];

const medianMs = (served: readonly Served[]): number =>
  served.map(({ tookMs }) => tookMs).sort((a, b) => a - b)[Math.floor(served.length / 2)] ?? Number.NaN;
const refusedOf = (served: readonly Served[]) => served.filter(({ status }) => status !== 200);

describe.each(ENGINES.filter(({ isThere }) => isThere))('on $title', ({ env }) => {
  test('a burst of one key gets its pages and 429, and another customer no 503 and at most twice the time', async () => {
    const { port, url, good, bad } = await hostileService({ env: env(), keys: 1 });
    const customer = goodCustomer(url, good);
    onTestFinished(() => customer.close());
    await customer.askOften(50);
    const before = await customer.askOften(100);
    const flood = { connections: 30, requests: 150 };
    const attack = startAttack({ kind: 'flood', port, keys: bad, path: PATH, ...flood });
    onTestFinished(() => attack.stop());
    await until(async () => (await attack.suffered()).answers['429'] !== undefined);
    const beside = await customer.askOften(200);
    const { answers } = await attack.suffered();
    await attack.stop();
    const after = await customer.askOften(100);
    expect(refusedOf(beside)).toEqual([]);
    expect(answers).toEqual({ '200': 60, '429': expect.any(Number) });
    expect(medianMs(beside)).toBeLessThan(2 * Math.max(medianMs(before), medianMs(after)));
  });
});

test('a hundred connections that pipeline 60 pages and read nothing, or a byte a second, take less than 100 MB', async () => {
  const { port, url, good, bad, residentMb, sockets } = await hostileService({ keys: 100, rateLimit: 1_000 });
  const customer = goodCustomer(url, good);
  onTestFinished(() => customer.close());
  await customer.ask();
  const idle = sockets();
  // Pages that are read take memory too, which the comparison leaves out.
  const usual = startAttack({ kind: 'flood', port, keys: bad, path: PATH, connections: 100, requests: 30 });
  await until(async () => ((await usual.suffered()).answers['200'] ?? 0) >= 3_000);
  await usual.stop();
  await until(() => sockets() <= idle);
  const beforeMb = residentMb();
  let mostMb = 0;
  const unread = { kind: 'unread', port, path: PATH, connections: 50, requests: 60 } as const;
  const attacks = [
    startAttack({ ...unread, keys: bad.slice(0, 50), bytesPerSecond: 0 }),
    startAttack({ ...unread, keys: bad.slice(50), bytesPerSecond: 1 }),
  ];
  onTestFinished(async () => void (await Promise.all(attacks.map((attack) => attack.stop()))));
  const areClosed = async (): Promise<boolean> => {
    mostMb = Math.max(mostMb, residentMb());
    expect((await customer.ask()).status).toBe(200);
    return sockets() <= idle;
  };
  await until(() => sockets() > idle + 90);
  await until(areClosed, 90_000);
  expect(mostMb - beforeMb).toBeLessThan(100);
});

test('a customer with a key is served beside 2,048 silent connections of 32 addresses, over TLS', async () => {
  const { port, url, good } = await hostileService();
  const customer = goodCustomer(url, good, { keepAlive: false });
  onTestFinished(() => customer.close());
  const addresses = Array.from({ length: 32 }, (_, number) => `127.0.${number + 1}.1`);
  const attack = startAttack({ kind: 'silent', port, addresses, each: 64 });
  onTestFinished(() => attack.stop());
  await until(async () => (await attack.suffered()).opened >= 2_048);
  expect(refusedOf(await customer.askOften(24))).toEqual([]);
});

test('guessed keys in 60 handshakes at once do not double the time of another page', async () => {
  const { port, url, good } = await hostileService();
  const customer = goodCustomer(url, good);
  onTestFinished(() => customer.close());
  await customer.askOften(100);
  const before = await customer.askOften(100);
  const attack = startAttack({ kind: 'guess', port, path: `${BASE_PATH}/transactions`, connections: 60 });
  onTestFinished(() => attack.stop());
  await until(async () => (await attack.suffered()).answers['401'] !== undefined);
  const beside = await customer.askOften(200);
  await attack.stop();
  const after = await customer.askOften(100);
  expect(refusedOf(beside)).toEqual([]);
  expect(medianMs(beside)).toBeLessThan(2 * Math.max(medianMs(before), medianMs(after)));
});
