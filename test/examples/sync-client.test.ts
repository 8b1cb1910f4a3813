import { describe, expect, test } from 'vitest';
import { type SyncOptions, sync, type Transaction, windows } from '../../examples/sync-client/sync-client.ts';
import { KEY, RANGE, startTestApi } from '../support/service/api.ts';
import { showing } from '../support/transactions/records.ts';

const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');

function recorder(answers: readonly Response[]) {
  const left = [...answers];
  const waitsMs: number[] = [];
  const urls: string[] = [];
  const stored = new Map<number, Transaction>();
  const options: SyncOptions = {
    baseUrl: 'https://api.example.com/api/v1/integration',
    apiKey: 'svc_test_x',
    fromMs: START,
    toMs: START + DAY_MS,
    upsert: (transaction) => void stored.set(transaction.id, transaction),
    async fetch(url) {
      urls.push(String(url));
      const answer = left.shift();
      if (answer === undefined) throw new TypeError('fetch failed');
      return answer;
    },
    wait: async (ms) => void waitsMs.push(ms),
  };
  return { options, waitsMs, urls, stored };
}

const page = (ids: readonly number[], next_cursor: string | null = null): Response =>
  Response.json({ data: ids.map((id) => ({ id })), pagination: { next_cursor } });
const answer = (status: number, headers: Record<string, string> = {}): Response =>
  new Response('{}', { status, headers });

describe('windows', () => {
  test('follow each other without a gap and without a millisecond twice, none longer than 31 days', () => {
    const toMs = START + 100 * DAY_MS;
    const all = [...windows(START, toMs)];
    expect(all).toHaveLength(4);
    expect([all[0]?.fromMs, all.at(-1)?.toMs]).toEqual([START, toMs]);
    for (const [index, window] of all.entries()) {
      expect(window.toMs - window.fromMs).toBeLessThanOrEqual(31 * DAY_MS);
      if (index > 0) expect(window.fromMs).toBe((all[index - 1]?.toMs ?? 0) + 1);
    }
  });

  test('of one moment are one window, of a time that ends before it starts none', () => {
    expect([...windows(START, START)]).toEqual([{ fromMs: START, toMs: START }]);
    expect([...windows(START, START - 1)]).toEqual([]);
  });
});

describe('the example sync client', () => {
  test('follows the cursor, filters unchanged, and upserts by id', async () => {
    const { options, urls, stored } = recorder([page([3, 2], 'next'), page([2, 1])]);
    expect(await sync(options)).toEqual(new Set([3, 2, 1]));
    expect([...stored.keys()]).toEqual([3, 2, 1]);
    expect(urls[1]).toBe(`${urls[0]}&cursor=next`);
  });

  test('waits as long as a 429 says', async () => {
    const { options, waitsMs } = recorder([answer(429, { 'Retry-After': '7' }), page([1])]);
    expect(await sync(options)).toEqual(new Set([1]));
    expect(waitsMs).toEqual([7_000]);
  });

  test('asks again later and later on 5xx and broken connections, and gives up in the end', async () => {
    const { options, waitsMs } = recorder([answer(503), answer(500)]);
    await expect(sync(options)).rejects.toThrow('fetch failed');
    expect(waitsMs).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
  });

  test.each([400, 401, 403, 404])('does not repeat what is answered %s', async (status) => {
    const { options, waitsMs } = recorder([answer(status)]);
    await expect(sync(options)).rejects.toThrow(String(status));
    expect(waitsMs).toEqual([]);
  });

  test('pulls every page of the real service', async () => {
    const api = await startTestApi();
    const createdAtMs = Date.parse('2026-09-10T00:00:00Z');
    await api.show(...Array.from({ length: 250 }, (_, index) => showing({ id: index + 1, createdAtMs })));
    const [, fromMs = 0, toMs = 0] = (RANGE.match(/^from=(.*)&to=(.*)$/) ?? []).map((text) =>
      Date.parse(text),
    );
    const ids = await sync({
      baseUrl: 'https://ignored/api/v1/integration',
      apiKey: KEY,
      fromMs,
      toMs,
      upsert: () => undefined,
      async fetch(url, init) {
        const { pathname, search } = new URL(String(url));
        const { status, text } = await api.get(pathname + search, {
          key: null,
          headers: init?.headers as Record<string, string>,
        });
        return new Response(text, { status });
      },
    });
    expect(ids.size).toBe(250);
  });

  test('keeps amounts as the text that they came as, and ids as numbers', async () => {
    const text =
      '{"data":[{"id":1,"fuel":{"liters":45.20},"fees":{"total_amount":100.270000}}],"pagination":{"next_cursor":null}}';
    const { options, stored } = recorder([new Response(text)]);
    await sync(options);
    expect(stored.get(1)).toEqual({ id: 1, fuel: { liters: '45.20' }, fees: { total_amount: '100.270000' } });
  });
});
