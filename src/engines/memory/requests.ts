import type { RequestJournal, RequestRow } from '../../pull/request-journal.ts';
import { opening } from './opening.ts';

/** What keys asked for, in the memory of one thread: several openings share the rows, oldest first. */
export function openMemoryRequests(stored: RequestRow[]): RequestJournal {
  const newestOf = (prefix: string): RequestRow | undefined =>
    stored
      .filter((row) => row.prefix === prefix)
      .reduce<RequestRow | undefined>(
        (newest, row) => (newest === undefined || row.atMs >= newest.atMs ? row : newest),
        undefined,
      );
  const { close, ...journal } = opening('what keys asked for', {
    async append(rows: readonly RequestRow[]) {
      for (const row of rows) stored.push(structuredClone(row));
    },
    async found(prefix: string, { sinceMs, untilMs }: { sinceMs: number; untilMs: number }) {
      const own = stored.filter((row) => row.prefix === prefix && row.atMs >= sinceMs && row.atMs <= untilMs);
      return structuredClone(own.toReversed().sort((a, b) => b.atMs - a.atMs));
    },
    async lastUses(prefixes: readonly string[]) {
      const found = prefixes.flatMap((prefix) => newestOf(prefix) ?? []);
      return new Map(found.map(({ prefix, atMs, address }) => [prefix, { atMs, address }]));
    },
    async trim(beforeMs: number) {
      const old = stored.filter((row) => row.atMs < beforeMs && row !== newestOf(row.prefix));
      for (const row of old) stored.splice(stored.indexOf(row), 1);
      return old.length;
    },
  });
  return {
    ...journal,
    close,
    async *requestsOf(prefix, range) {
      yield* await journal.found(prefix, range);
    },
  };
}
