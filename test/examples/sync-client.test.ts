import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { parseExactly, type Transaction } from '../../examples/ledger/transaction.ts';
import { type SyncOptions, sync } from '../../examples/sync-client/sync-client.ts';
import { KEY, startTestApi } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { printedRecord } from '../support/transactions/printed-record.ts';
import { hiding, showingRecord } from '../support/transactions/records.ts';
import { at, DAY_MS, FakeService, START } from './fake-service.ts';

const NOTHING = { pages: 1, transactions: 0, added: 0, changed: 0, removed: 0, accessEnds: null };
const idsIn = (ledger: Ledger): number[] => [...ledger.records()].map((text) => JSON.parse(text).id);
const pushed = (id: number, day: number): Transaction =>
  parseExactly(printedRecord(id, { created_at: at(day) })) as Transaction;
const refusal = (status: number, error: object, headers: Record<string, string> = {}): Response =>
  Response.json({ error }, { status, headers });

function openLedger(file = ':memory:'): Ledger {
  const ledger = new Ledger(file);
  onTestFinished(() => {
    ledger.close();
  });
  return ledger;
}

function useFakeDate(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: START + 10 * DAY_MS });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

describe('the windows of a sync', () => {
  test('meet in a shared moment, none longer than 31 days', async () => {
    const service = new FakeService();
    await service.sync(openLedger(), { from: 0, to: 70 });
    expect(service.ranges()).toEqual([`${at(0)} ${at(31)}`, `${at(31)} ${at(62)}`, `${at(62)} ${at(70)}`]);
  });

  test('begin at the overlap before the end of the last sync, or at FROM if that was moved back', async () => {
    const service = new FakeService();
    const ledger = openLedger();
    await service.sync(ledger, { from: 50, to: 80 });
    await service.sync(ledger, { from: 50, to: 81 }, { overlapMs: 3 * DAY_MS });
    await service.sync(ledger, { from: 40, to: 82 }, { overlapMs: 3 * DAY_MS });
    await service.sync(ledger, { from: 40, to: 83 }, { overlapMs: 3 * DAY_MS });
    const starts = service.ranges().map((range) => range.split(' ')[0]);
    expect(starts).toEqual([at(50), at(77), at(40), at(71), at(79)]);
  });
});

describe('a sync', () => {
  test('follows the cursor with everything else unchanged, and stores exact amounts', async () => {
    const service = new FakeService().has([1, 1], [2, 2], [3, 3]);
    const ledger = openLedger();
    const counted = await service.sync(ledger, { from: 0, to: 5 });
    expect(counted).toEqual({ ...NOTHING, pages: 2, transactions: 3, added: 3 });
    expect(`${service.urls[1]}`).toBe(`${service.urls[0]}&cursor=2`);
    expect(idsIn(ledger)).toEqual([3, 2, 1]);
    expect([...ledger.records()][0]).toContain('"total_amount":"100.270000"');
    expect([...ledger.records()][0]).not.toContain('photos.example.com');
  });

  test('removes what vanished from its windows, and nothing else', async () => {
    const service = new FakeService().has([1, 1], [2, 40], [3, 41]);
    const ledger = openLedger();
    await service.sync(ledger, { from: 0, to: 45 });
    service.days.delete(1); // before the overlap
    service.days.delete(3);
    const { removed } = await service.sync(ledger, { from: 0, to: 46 }, { overlapMs: 10 * DAY_MS });
    expect([removed, idsIn(ledger)]).toEqual([1, [2, 1]]);
  });

  test('does not remove what a webhook has just brought, before a pull shows it', async () => {
    const service = new FakeService().has([1, 1]);
    const ledger = openLedger();
    ledger.receive('d1', pushed(2, 2));
    await service.sync(ledger, { from: 0, to: 5 });
    expect(idsIn(ledger)).toEqual([2, 1]);
    service.has([2, 2]);
    await service.sync(ledger, { from: 0, to: 5 });
    service.days.delete(2);
    await service.sync(ledger, { from: 0, to: 5 });
    expect(idsIn(ledger)).toEqual([1]);
  });

  test('removes what a webhook brought where no pull has shown it for ten minutes: it was voided at once', async () => {
    useFakeDate();
    const service = new FakeService().has([1, 1]);
    const ledger = openLedger();
    ledger.receive('d1', pushed(2, 2));
    vi.setSystemTime(START + 10 * DAY_MS + 9 * 60_000);
    await service.sync(ledger, { from: 0, to: 5 });
    expect(idsIn(ledger)).toEqual([2, 1]);
    vi.setSystemTime(START + 10 * DAY_MS + 11 * 60_000);
    await service.sync(ledger, { from: 0, to: 5 });
    expect(idsIn(ledger)).toEqual([1]);
  });

  test('reaches back to what a webhook brought from before the overlap, until a pull has shown it', async () => {
    useFakeDate();
    const service = new FakeService().has([1, 5]);
    const ledger = openLedger();
    const overlapMs = 3 * DAY_MS;
    await service.sync(ledger, { from: 2, to: 8 });
    service.has([2, 3], [3, 1]); // recorded late, one of them before FROM
    ledger.receive('d2', pushed(2, 3));
    ledger.receive('d3', pushed(3, 1));
    service.days.delete(3); // voided before a pull has shown it
    vi.setSystemTime(START + 10 * DAY_MS + 11 * 60_000);
    for (let times = 1; times <= 2; times++) await service.sync(ledger, { from: 2, to: 8 }, { overlapMs });
    expect(idsIn(ledger)).toEqual([1, 2]);
    expect(service.ranges().map((range) => range.split(' ')[0])).toEqual([at(2), at(1), at(5)]);
  });

  test('is not overruled by a webhook: what a pull has shown stays, and what it removed stays removed', async () => {
    const service = new FakeService().has([1, 1], [2, 2]);
    const ledger = openLedger();
    await service.sync(ledger, { from: 0, to: 5 });
    expect(ledger.receive('d1', pushed(2, 2))).toBe('stored before');
    expect(ledger.oldestUnshown()).toBeNull();
    service.days.delete(2);
    await service.sync(ledger, { from: 0, to: 5 });
    for (const delivery of ['d1', 'the other key'])
      expect(ledger.receive(delivery, pushed(2, 2))).toBe('stored before');
    expect(idsIn(ledger)).toEqual([1]);
    service.has([2, 2]);
    await service.sync(ledger, { from: 0, to: 5 });
    expect(idsIn(ledger)).toEqual([2, 1]);
  });

  test('refuses to remove a large part of a window unless it is told to', async () => {
    const service = new FakeService().has(...Array.from({ length: 40 }, (_, n) => [n, n / 10] as const));
    service.pageSize = 100;
    const ledger = openLedger();
    await service.sync(ledger, { from: 0, to: 5 });
    service.days.clear();
    await expect(service.sync(ledger, { from: 0, to: 5 })).rejects.toThrow(
      /40 of 40 .* does API_KEY belong to the right/,
    );
    expect(ledger.count()).toBe(40);
    const { removed } = await service.sync(ledger, { from: 0, to: 5 }, { removeMuch: true });
    expect([removed, ledger.count()]).toEqual([40, 0]);
  });

  test('that was interrupted continues with its page, and is followed by one that finds what changed since', async () => {
    const service = new FakeService().has([1, 1], [2, 2], [3, 3], [4, 40]);
    const file = join(temporaryFolder(), 'fuel.db');
    service.failures.push(undefined, refusal(401, { code: 'INVALID_API_KEY' }));
    await expect(service.sync(openLedger(file), { from: 0, to: 30 })).rejects.toThrow('INVALID_API_KEY');
    const ledger = openLedger(file);
    expect(idsIn(ledger)).toEqual([]); // the page is staged until the window is complete
    service.has([5, 4]).days.delete(3); // both before the page with which it continues
    await service.sync(ledger, { from: 0, to: 45 });
    expect(service.urls[2]?.searchParams.get('cursor')).toBe('2');
    expect(idsIn(ledger)).toEqual([4, 5, 2, 1]);
    expect(ledger.synced()).toEqual({ from: at(0), to: at(45) });
  });

  test('begins a window again where its cursor is refused', async () => {
    const service = new FakeService().has([1, 1], [2, 2], [3, 3]);
    const badCursor = refusal(400, { code: 'VALIDATION_FAILED', fields: { cursor: 'malformed' } });
    service.failures.push(undefined, badCursor);
    const ledger = openLedger();
    await service.sync(ledger, { from: 0, to: 5 });
    expect(service.urls.map(({ searchParams }) => searchParams.get('cursor'))).toEqual([
      null,
      '2',
      null,
      '2',
    ]);
    expect(idsIn(ledger)).toEqual([3, 2, 1]);
  });

  test('after any interruptions, arrivals, voids and webhooks brings the ledger to what the service shows', async () => {
    useFakeDate();
    const day = fc.integer({ min: 0, max: 40 });
    const id = fc.integer({ min: 1, max: 12 });
    const action = fc.oneof(
      fc.record({ do: fc.constant('record' as const), id, day }),
      fc.record({ do: fc.constant('void' as const), id }),
      fc.record({ do: fc.constant('push' as const), id }),
      fc.record({ do: fc.constant('sync' as const), pages: fc.integer({ min: 0, max: 12 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const [service, ledger] = [new FakeService(), new Ledger(':memory:')];
        const voided = new Set<number>();
        const sync = () =>
          service.sync(ledger, { from: 0, to: 41 }, { overlapMs: 50 * DAY_MS, removeMuch: true });
        for (const one of actions) {
          const createdOn = one.do === 'push' ? service.days.get(one.id) : undefined;
          if (one.do === 'record' && !voided.has(one.id) && !service.days.has(one.id))
            service.has([one.id, one.day]);
          if (one.do === 'void' && service.days.delete(one.id)) voided.add(one.id);
          if (one.do === 'push' && createdOn !== undefined) {
            ledger.receive(`d${one.id}`, pushed(one.id, createdOn));
          }
          if (one.do === 'sync') {
            service.failures.push(...Array.from({ length: one.pages }, () => undefined));
            service.failures.push(refusal(401, { code: 'INVALID_API_KEY' }));
            await sync().catch(() => undefined);
            service.failures.length = 0;
          }
        }
        // A transaction that a webhook brought and no pull has shown since is kept for ten minutes.
        vi.setSystemTime(Date.now() + 11 * 60_000);
        await sync();
        expect(idsIn(ledger).toSorted()).toEqual([...service.days.keys()].toSorted());
        ledger.close();
      }),
      { numRuns: 150 },
    );
  });

  test('notices that another one works on the same file', async () => {
    const service = new FakeService().has([1, 1], [2, 2], [3, 3]);
    const ledger = openLedger();
    const onPage = (): void => {
      const window = ledger.interrupted();
      if (window !== null) ledger.restart(window);
    };
    const fetchThenRestart = async (url: unknown): Promise<Response> => {
      const page = await service.fetch(url);
      onPage();
      return page;
    };
    const options = { fetch: fetchThenRestart as typeof fetch };
    await expect(service.sync(ledger, { from: 0, to: 5 }, options)).rejects.toThrow('another sync client');
  });

  test('waits as long as a 429 says', async () => {
    const service = new FakeService();
    service.failures.push(refusal(429, { code: 'RATE_LIMITED' }, { 'Retry-After': '7' }));
    await service.sync(openLedger(), { from: 0, to: 5 });
    expect(service.waitsMs).toEqual([7_000]);
  });

  test('asks again later and later on 408, 5xx and broken connections, and gives up in the end', async () => {
    const service = new FakeService();
    service.failures.push(refusal(408, {}), new Response('<html>', { status: 502 }));
    service.failures.push(...Array.from({ length: 10 }, () => null));
    await expect(service.sync(openLedger(), { from: 0, to: 5 })).rejects.toThrow(
      'gave up after 8 tries: no answer from https://api.example.com/api/v1/integration: ECONNRESET',
    );
    expect(service.waitsMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
  });

  test.each(['DEPTH_ZERO_SELF_SIGNED_CERT', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED'])(
    'stops at once where the certificate is not trusted: %s',
    async (code) => {
      const service = new FakeService();
      const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: { code, message: '' } }));
      await expect(service.sync(openLedger(), { from: 0, to: 5 }, { fetch })).rejects.toThrow(
        `${code}: set NODE_EXTRA_CA_CERTS`,
      );
      expect(service.waitsMs).toEqual([]);
    },
  );

  test('says so where something else answers', async () => {
    const service = new FakeService();
    service.failures.push(Response.json({ hello: 'world' }));
    await expect(service.sync(openLedger(), { from: 0, to: 5 })).rejects.toThrow('is BASE_URL right?');
  });

  test.each([400, 401, 403, 404])('does not repeat what is answered %s, and says why', async (status) => {
    const service = new FakeService();
    const error = { code: 'A_CODE', message: 'M.', request_id: 'r', fields: { to: 'x' } };
    service.failures.push(refusal(status, error));
    const failed = service.sync(openLedger(), { from: 0, to: 5 });
    await expect(failed).rejects.toThrow(`${status} A_CODE M.; to: x (request r)`);
    expect(service.waitsMs).toEqual([]);
  });

  test('pulls every page of the real API, and removes what is voided', async () => {
    const api = await startTestApi();
    await api.show(...Array.from({ length: 250 }, (_, index) => showingRecord(index + 1)));
    const ledger = openLedger();
    const fetchFromApi = async (url: unknown): Promise<Response> => {
      const { pathname, search } = new URL(String(url));
      const { status, text } = await api.get(pathname + search, { key: KEY });
      return new Response(text, { status });
    };
    const options: SyncOptions = {
      baseUrl: 'https://ignored/api/v1/integration',
      apiKey: KEY,
      ledger,
      fetch: fetchFromApi as typeof fetch,
      fromMs: Date.parse('2026-09-01T00:00:00Z'),
      toMs: Date.parse('2026-09-30T00:00:00Z'),
    };
    expect(await sync(options)).toMatchObject({ pages: 3, added: 250 });
    await api.show(hiding(7), hiding(8));
    expect(await sync(options)).toMatchObject({ transactions: 248, added: 0, changed: 0, removed: 2 });
    expect(ledger.count()).toBe(248);
  });
});
