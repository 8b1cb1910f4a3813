import type { Ledger } from '../../examples/ledger/ledger.ts';
import { type SyncOptions, sync } from '../../examples/sync-client/sync-client.ts';
import { printedRecord } from '../support/transactions/printed-record.ts';

export const FIRST_KEY = 'svc_test_first_x';
export const OTHER_KEY = 'svc_test_other_x';
export const DAY_MS = 86_400_000;
export const START = Date.parse('2026-01-01T00:00:00Z');
export const at = (day: number): string => new Date(START + day * DAY_MS).toISOString();

/** A service that has transactions, by id, with the day on which each was created. */
export class FakeService {
  readonly days = new Map<number, number>();
  readonly urls: URL[] = [];
  readonly waitsMs: number[] = [];
  /** The answers before the next pages, in order; `null` for a failed connection, `undefined` for a page. */
  readonly failures: (Response | null | undefined)[] = [];
  pageSize = 2;
  /** The members that its records have besides the usual ones. */
  overrides: Readonly<Record<string, unknown>> = {};
  accessEnds: string | null = null;

  has(...entries: readonly (readonly [id: number, day: number])[]): this {
    for (const [id, day] of entries) this.days.set(id, day);
    return this;
  }

  readonly fetch = async (url: unknown): Promise<Response> => {
    const { searchParams } = new URL(String(url));
    this.urls.push(new URL(String(url)));
    const failure = this.failures.shift();
    if (failure === null) throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET', message: '' } });
    if (failure !== undefined) return failure;
    const [from = '', to = ''] = [searchParams.get('from') ?? '', searchParams.get('to') ?? ''];
    const all = [...this.days]
      .filter(([, day]) => at(day) >= from && at(day) <= to)
      .sort((a, b) => b[1] - a[1] || b[0] - a[0]);
    const start = Number(searchParams.get('cursor') ?? 0);
    const end = start + this.pageSize;
    const records = all
      .slice(start, end)
      .map(([id, day]) => printedRecord(id, { created_at: at(day), ...this.overrides }));
    const next = end < all.length ? `"${end}"` : 'null';
    const headers = this.accessEnds === null ? {} : { 'X-Access-Expires-At': this.accessEnds };
    return new Response(`{"data":[${records.join(',')}],"pagination":{"next_cursor":${next}}}`, { headers });
  };

  sync(ledger: Ledger, days: { from: number; to: number }, overrides: Partial<SyncOptions> = {}) {
    return sync({
      baseUrl: 'https://api.example.com/api/v1/integration',
      apiKey: FIRST_KEY,
      ledger,
      fromMs: START + days.from * DAY_MS,
      toMs: START + days.to * DAY_MS,
      fetch: this.fetch as typeof fetch,
      wait: async (ms) => void this.waitsMs.push(ms),
      ...overrides,
    });
  }

  /** Returns the requested ranges, without the further pages of each. */
  ranges(): string[] {
    return this.urls
      .filter(({ searchParams }) => !searchParams.has('cursor'))
      .map(({ searchParams }) => `${searchParams.get('from')} ${searchParams.get('to')}`);
  }
}
