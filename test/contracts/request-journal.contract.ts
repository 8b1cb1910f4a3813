import { describe, expect, onTestFinished, test } from 'vitest';
import type { RequestJournal, RequestRow } from '../../src/pull/request-journal.ts';

const KEY = 'aaaaaaaaaa';
const ALL = { sinceMs: 0, untilMs: 1_000_000 };

export const requestRow = (atMs: number, overrides: Partial<RequestRow> = {}): RequestRow => ({
  prefix: KEY,
  atMs,
  count: 1,
  address: '203.0.113.7',
  status: 200,
  code: null,
  rows: 3,
  query: {
    fromMs: 1,
    toMs: 2,
    statuses: ['CONFIRMED'],
    references: { corporate_group_id: 3, corporate_id: [31, 32] },
    after: { createdAtMs: 5, id: 501 },
    limit: 50,
  },
  ...overrides,
});

/** The contract of the request journal. `open` returns two openings of one empty journal, as in two processes. */
export function requestJournalContract(open: () => Promise<readonly [RequestJournal, RequestJournal]>): void {
  async function opened() {
    const [journal, other] = await open();
    onTestFinished(async () => void (await Promise.all([journal.close(), other.close()])));
    const timesOf = async (prefix = KEY, range = ALL) =>
      (await Array.fromAsync(other.requestsOf(prefix, range))).map(({ atMs }) => atMs);
    return { journal, other, timesOf };
  }

  describe('what keys asked for', () => {
    test('is given back as it was stored, to whoever asks, of one key and the newest first', async () => {
      const { journal, other, timesOf } = await opened();
      const refused = requestRow(30, {
        address: null,
        status: 403,
        code: 'IP_NOT_ALLOWED',
        rows: null,
        query: null,
      });
      await journal.append([requestRow(10), requestRow(20, { prefix: 'bbbbbbbbbb' })]);
      await journal.append([refused]);
      expect(await Array.fromAsync(other.requestsOf(KEY, ALL))).toEqual([refused, requestRow(10)]);
      expect(await timesOf('bbbbbbbbbb')).toEqual([20]);
      expect(await timesOf('cccccccccc')).toEqual([]);
    });

    test('is given whole, however much of it has one time, with both ends of a range', async () => {
      const { journal, timesOf } = await opened();
      await journal.append(Array.from({ length: 1_201 }, (_, n) => requestRow(n < 700 ? 50 : 60)));
      await journal.append([requestRow(40), requestRow(70)]);
      expect(await timesOf()).toHaveLength(1_203);
      expect(await timesOf(KEY, { sinceMs: 50, untilMs: 60 })).toHaveLength(1_201);
      expect(await timesOf(KEY, { sinceMs: 41, untilMs: 59 })).toHaveLength(700);
    });

    test('is one row for the refused requests of a key, code, address and minute, which a later count replaces', async () => {
      const { journal, other } = await opened();
      const refused = (atMs: number, overrides: Partial<RequestRow> = {}) =>
        requestRow(atMs, { status: 429, code: 'RATE_LIMITED', rows: null, query: null, ...overrides });
      const others = [
        refused(11, { address: '203.0.113.8' }),
        refused(12, { status: 403, code: 'IP_NOT_ALLOWED' }),
        refused(60_001),
      ];
      await journal.append([refused(10), ...others]);
      await journal.append([refused(59_000, { count: 700 })]);
      await other.append([refused(59_500, { count: 2 })]); // another process has a row of its own
      const found = await Array.fromAsync(other.requestsOf(KEY, ALL));
      const [at11, at12, at60001] = others;
      expect(found).toEqual([
        at60001,
        refused(59_500, { count: 2 }),
        refused(59_000, { count: 700 }),
        at12,
        at11,
      ]);
    });

    test('says when each key was used last, and from where', async () => {
      const { journal, other } = await opened();
      await journal.append([
        requestRow(20, { address: '::1' }),
        requestRow(10),
        requestRow(5, { prefix: 'bbbbbbbbbb' }),
      ]);
      expect(await other.lastUses([KEY, 'bbbbbbbbbb', 'cccccccccc'])).toEqual(
        new Map([
          [KEY, { atMs: 20, address: '::1' }],
          ['bbbbbbbbbb', { atMs: 5, address: '203.0.113.7' }],
        ]),
      );
      expect(await other.lastUses([])).toEqual(new Map());
    });

    test('is removed before a time, but for the newest of each key, and only once', async () => {
      const { journal, timesOf } = await opened();
      const old = Array.from({ length: 2_100 }, (_, n) => requestRow(n));
      await journal.append([...old, requestRow(5, { prefix: 'bbbbbbbbbb' }), requestRow(3_000)]);
      expect(await journal.trim(2_000)).toBe(2_000);
      expect(await timesOf('bbbbbbbbbb')).toEqual([5]);
      expect((await timesOf()).at(-1)).toBe(2_000);
      expect(await journal.trim(2_000)).toBe(0);
      expect(await journal.trim(9_000)).toBe(100);
      expect(await timesOf()).toEqual([3_000]);
    });
  });
}
