import { world } from '../base/world.ts';
import { type RowOf, type StorePlan, tablePlan } from '../tables/plan.ts';
import { drop, put, type Tables } from '../tables/tables.ts';
import { minuteOf, type RequestJournal, type RequestRow } from './request-journal.ts';

const REQUESTS = tablePlan({
  name: 'requests',
  key: 'id',
  columns: {
    id: 'text',
    prefix: 'text',
    at: 'time',
    address: 'text?',
    status: 'integer',
    code: 'text?',
    count: 'integer',
    rows: 'integer?',
    query: 'text?', // JSON
  },
  indexes: { by_key: ['prefix', 'at'], by_time: ['at'] },
});
export const REQUESTS_STORE: StorePlan = {
  name: 'requests',
  version: 1,
  tables: [REQUESTS],
  durability: 'normal',
  withinMs: 10_000,
};
const PAGE = 1_000;
/** More ids than a process makes in a millisecond. */
const MAX_IDS = 36 ** 4;
/** The rows removed in one write. It takes some milliseconds, and the thread also answers requests. */
const TRIMMED_AT_ONCE = 100;

/** Keeps the requests of keys in tables that several processes share. */
export function openRequestJournal(tables: Tables): RequestJournal {
  const newId = idsOf(world.randomUUID().slice(0, 8));
  const newestOf = (prefixes: readonly string[]) =>
    tables.firsts(REQUESTS, { index: 'by_key', of: 'prefix', values: prefixes, descending: true });
  return {
    async append(rows) {
      await tables.write(rows.map((row) => put(REQUESTS, toStored(newId(row), row))));
    },
    async *requestsOf(prefix, { sinceMs, untilMs }) {
      const asked = { index: 'by_key', equals: { prefix }, range: { from: sinceMs, to: untilMs } } as const;
      for (let after: RowOf<typeof REQUESTS> | undefined; ; ) {
        const page = await tables.find(REQUESTS, { ...asked, descending: true, after, limit: PAGE });
        for (const row of page) yield toRequest(row);
        after = page.at(-1);
        if (after === undefined) return;
      }
    },
    async lastUses(prefixes) {
      const newest = (await newestOf(prefixes)).map(({ id = '' }) => id);
      const found = await tables.get(REQUESTS, newest, ['prefix', 'at', 'address']);
      return new Map(found.map(({ prefix, at, address }) => [prefix, { atMs: at, address }]));
    },
    async trim(beforeMs) {
      const old = { index: 'by_time', range: { to: beforeMs - 1 }, limit: TRIMMED_AT_ONCE } as const;
      let removed = 0;
      for (let after: RowOf<typeof REQUESTS> | undefined; ; await world.nextTurn()) {
        const page = await tables.find(REQUESTS, { ...old, after });
        after = page.at(-1);
        if (after === undefined) return removed;
        const newest = await newestOf([...new Set(page.map(({ prefix }) => prefix))]);
        const kept = new Set(newest.map(({ id }) => id));
        const gone = page.filter(({ id }) => !kept.has(id));
        await tables.write(gone.map(({ id }) => drop(REQUESTS, id)));
        removed += gone.length;
      }
    },
    close: () => tables.close(),
  };
}

/**
 * Makes ids. Those of accepted requests sort by time, and within a millisecond by when they were made. Refused ones have one
 * for each key, code, address and minute. `tag` distinguishes openings of the store.
 */
function idsOf(tag: string): (row: RequestRow) => string {
  let made = 0;
  const digits = (value: number, count: number): string => value.toString(36).padStart(count, '0');
  return ({ atMs, prefix, code, address }) => {
    if (code !== null) return [minuteOf(atMs).toString(36), tag, prefix, code, address].join(' ');
    made = (made + 1) % MAX_IDS;
    return `${digits(atMs, 9)}${digits(made, 4)}${tag}`;
  };
}

function toStored(id: string, { atMs: at, query, ...row }: RequestRow): RowOf<typeof REQUESTS> {
  return { ...row, id, at, query: query === null ? null : JSON.stringify(query) };
}

function toRequest({ id: _, at, query, code, ...row }: RowOf<typeof REQUESTS>): RequestRow {
  const reason = code as RequestRow['code'];
  return { ...row, atMs: at, code: reason, query: query === null ? null : JSON.parse(query) };
}
