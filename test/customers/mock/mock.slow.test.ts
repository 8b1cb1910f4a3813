import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/base/listen.ts';
import { startMock } from '../../../src/customers/mock/mock.ts';
import { DAY_MS, formatDateTime } from '../../../src/domain/values/date-time.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const TO_MS = Date.parse('2026-10-01T00:00:00.000Z');

/** Folders for temporary files are made here. */
function ownFolder(): string {
  const { TMPDIR } = process.env;
  const folder = temporaryFolder();
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  return folder;
}

test.each([0, 1])(
  'a mock whose port (%d after the one named) is taken leaves nothing behind',
  async (after) => {
    const folder = ownFolder();
    const port = await lastingPort();
    const taken = createServer();
    onTestFinished(() => void taken.close());
    await listen(taken, { host: '127.0.0.1', port: port + after });
    await expect(startMock({ seed: 1, port, toMs: TO_MS })).rejects.toMatchObject({
      code: 'REFUSED',
    });
    expect(readdirSync(folder)).toEqual([]);
    const other = createServer();
    onTestFinished(() => void other.close());
    await listen(other, { host: '127.0.0.1', port: port + 1 - after }); // the listener that had started has ended
  },
);

async function started() {
  ownFolder();
  const { controlUrl, baseUrl, caFile, data, stop } = await startMock({ seed: 1, port: 0, toMs: TO_MS });
  onTestFinished(() => stop());
  const ask = async (path: string, members: Record<string, string | number>) => {
    const body = JSON.stringify(members);
    const headers = { 'Content-Type': 'application/json' };
    return (await fetch(controlUrl + path, { method: 'POST', body, headers })).json();
  };
  const ledger = async () => {
    const lines = (await (await fetch(`${controlUrl}/transactions`)).text()).trimEnd().split('\n');
    return lines.map((line): Entry => JSON.parse(line));
  };
  const dispatcher = new Agent({ connect: { ca: readFileSync(caFile) } });
  const pull = async (key = data.key, { from, to } = { from: Date.now() - DAY_MS, to: Date.now() }) => {
    const range = `from=${formatDateTime(from)}&to=${formatDateTime(to)}`;
    return await request(`${baseUrl}/transactions?${range}`, { headers: { 'X-API-Key': key }, dispatcher });
  };
  return { ask, ledger, pull, data, stop };
}

interface Entry {
  readonly id: number;
  readonly status: string;
  readonly total_amount: string;
}

/** A receiver that answers these statuses in turn and records what it got. */
async function receiving(...statuses: readonly number[]) {
  const got: (readonly [id: unknown, signature: unknown])[] = [];
  const asked = Promise.withResolvers<void>();
  const receiver = createHttpServer((request, response) => {
    response.writeHead(statuses[got.length] ?? 500).end();
    got.push([request.headers['x-service-delivery'], request.headers['x-service-signature']]);
    asked.resolve();
  });
  onTestFinished(() => void receiver.close());
  const { port } = await listen(receiver, { host: '127.0.0.1', port: 0 });
  return { got, asked: asked.promise, url: `http://127.0.0.1:${port}/` };
}

test('a mock sends a webhook again until it is accepted, under the same id and signed anew', async () => {
  const { ask } = await started();
  const { got, url } = await receiving(503, 204);
  expect((await ask('/send', { kind: 'retry', url })).sent).toMatchObject([
    { status: 503, expected: 'accepted or 503', as_expected: true },
    { status: 204, as_expected: true },
  ]);
  const [[id, signature] = [], [sameId, other] = []] = got;
  expect(sameId).toBe(id);
  expect(other).not.toBe(signature);
});

test('a mock that ends does not wait to send a webhook again', async () => {
  const { ask, stop } = await started();
  const { got, asked, url } = await receiving(503, 503);
  const ended = ask('/send', { kind: 'retry', url }).catch(() => 'the connection was closed');
  await asked;
  await stop();
  await ended;
  expect(got.length).toBe(1);
});

test('a mock adds transactions that a pull and a receiver get, and lists what a ledger should hold', async () => {
  const { ask, ledger, pull, data } = await started();
  const before = await ledger();
  expect(before.map(({ id }) => id)).toEqual([...data.shown.keys()]);
  const { got, url } = await receiving(...Array(5).fill(204));
  const { created, sent } = await ask('/new', { kind: 'confirmed', count: 2, url });
  expect(sent.map(({ transaction }: { transaction: number }) => transaction)).toEqual(created);
  const external = await ask('/new', { kind: 'external', url });
  const refund = await ask('/new', { kind: 'refund', count: 2, url });
  const ids = [...created, ...external.created, ...refund.created];
  expect(ids).toEqual([102_001, 102_002, 102_003, 102_004, 102_005]);
  expect(new Set(got.map(([id]) => id)).size).toBe(5);

  const answer = await pull();
  expect(new Date(`${answer.headers['x-access-expires-at']}`).getTime()).toBeGreaterThan(TO_MS);
  const { data: pulled } = (await answer.body.json()) as { data: { id: number; fuel: { amount: number } }[] };
  expect(pulled.map(({ id }) => id).toSorted()).toEqual(ids);
  expect(pulled.filter(({ fuel }) => fuel.amount < 0).map(({ id }) => id)).toEqual([102_005, 102_004]);
  await ask('/void', { transaction: created[0] });
  const after = (await ledger()).slice(before.length);
  expect(after.map(({ id, status }) => [id, status])).toEqual([
    [102_002, 'CONFIRMED'],
    [102_003, 'EXTERNAL'],
    [102_004, 'CONFIRMED'],
    [102_005, 'CONFIRMED'],
  ]);
  expect(after[3]?.total_amount).toMatch(/^-\d+\.\d{2,6}$/);
});

test('a mock adds transactions that are recorded days after they were created, as external ones are', async () => {
  const { ask, ledger, pull } = await started();
  const { created } = await ask('/new', { kind: 'external', days_ago: 40 });
  const [from, to] = [Date.now() - 41 * DAY_MS, Date.now() - 39 * DAY_MS];
  const { data } = (await (await pull(undefined, { from, to })).body.json()) as { data: { id: number }[] };
  expect(data.map(({ id }) => id)).toContain(created[0]);
  expect((await ledger()).at(-1)).toMatchObject({ id: created[0], status: 'EXTERNAL' });
});

test('a mock cuts a real page within its last record', async () => {
  const { ask, pull } = await started();
  await ask('/new', { kind: 'confirmed', count: 3 });
  await ask('/fail', { status: 'cut' });
  const { body, headers } = await pull();
  let text = '';
  const read = (async () => {
    for await (const chunk of body) text += chunk;
  })();
  await expect(read).rejects.toThrow();
  expect(text.match(/"status":"CONFIRMED"/g)?.length).toBe(2);
  expect(text).toMatch(/,\{"id":102001,$/);
  expect(Number(headers['content-length'])).toBeGreaterThan(text.length);
  expect((await pull()).statusCode).toBe(200);
});

test('a mock makes the next pull requests fail, in the order in which that was asked for', async () => {
  const { ask, pull, data } = await started();
  expect(await ask('/fail', { status: 429, times: 2 })).toEqual({ failing: [429, 429] });
  await ask('/fail', { status: 'IP_NOT_ALLOWED' });
  for (const status of [429, 429, 403]) expect((await pull()).statusCode).toBe(status);
  expect((await pull()).statusCode).toBe(200);
  expect((await pull(data.second.key)).statusCode).toBe(200);
  await ask('/fail', { status: 'reset', times: 9 });
  expect(await ask('/fail', { times: 0 })).toEqual({ failing: [] });
  expect((await pull()).statusCode).toBe(200);
  const times = 'times: must be an integer from 0 to 1000';
  for (const [refused, error] of [
    [{ status: 200 }, expect.stringContaining('status: must be one of ')],
    [{ status: 500, times: 1_001 }, times],
    [{ times: 'many' }, times],
  ] as const)
    expect(await ask('/fail', refused)).toEqual({ error });
});

test('a mock sends as many webhooks as asked for, and a transaction through both keys', async () => {
  const { ask } = await started();
  const { got, url } = await receiving(...Array(102).fill(204));
  const { sent } = await ask('/send', { kind: 'good', count: 100, url });
  expect(sent.map(({ status }: { status: number }) => status)).toEqual(Array(100).fill(204));
  expect(new Set(got.map(([id]) => id)).size).toBe(100);
  const transaction = sent[0].transaction;
  const [first] = (await ask('/send', { kind: 'good', transaction, url })).sent;
  const [second] = (await ask('/send', { kind: 'good', transaction, url, key: 'second' })).sent;
  expect([first.delivery, second.transaction]).toEqual([sent[0].delivery, transaction]);
  expect(second.delivery).not.toBe(first.delivery);
  const refused = async (members: Record<string, string | number>) =>
    (await ask('/send', { kind: 'good', transaction, url, ...members })).error;
  const leaveOut = 'transaction: leave it out with count, and with a kind that sends none or two';
  for (const several of [{ count: 2 }, { kind: 'unordered' }, { kind: 'test' }])
    expect(await refused(several)).toBe(leaveOut);
  expect(await refused({ count: 0 })).toBe('count: must be an integer from 1 to 1000');
});
