import {
  type DirectoryRows,
  type NewRow,
  pageOf,
  type RowDigest,
  type RowsCheckpoint,
} from '../../accounts/directory/rows/rows.ts';
import { opening } from './opening.ts';

const ROWS_A_READ = 500;

export class MemoryRows {
  checkpoint: RowsCheckpoint | undefined;
  rows = new Map<number, NewRow>();
  /** By prefix, also of keys that a row has no more. */
  readonly owners = new Map<string, Set<number>>();
}

/** The rows of the directory in the memory of one thread: several openings share them. */
export function openMemoryDirectoryRows(stored: MemoryRows): DirectoryRows {
  const put = (row: NewRow): void => {
    stored.rows.set(row.accountId, structuredClone(row));
    for (const prefix of row.prefixes) {
      const owners = stored.owners.get(prefix) ?? new Set();
      stored.owners.set(prefix, owners.add(row.accountId));
    }
  };
  const page = async (after: number): Promise<NewRow[]> => {
    const later = [...stored.rows.values()].filter(({ accountId }) => accountId > after);
    return structuredClone(later.sort((a, b) => a.accountId - b.accountId).slice(0, ROWS_A_READ));
  };
  const methods = opening('the rows of the directory', {
    page,
    checkpoint: async () => structuredClone(stored.checkpoint),
    owners: async (prefix: string) => [...(stored.owners.get(prefix) ?? [])],
    async save(rows: readonly NewRow[], checkpoint: RowsCheckpoint, expected: string) {
      if (stored.checkpoint?.seal !== expected) return false;
      for (const row of rows) put(row);
      stored.checkpoint = structuredClone(checkpoint);
      return true;
    },
    async clear(checkpoint: RowsCheckpoint) {
      stored.checkpoint = structuredClone(checkpoint);
      stored.rows.clear();
      stored.owners.clear();
    },
  });
  async function* inPages<Page>(pageWith: (rows: readonly NewRow[]) => Page): AsyncGenerator<Page> {
    for (let last: number | undefined = -1; last !== undefined; ) {
      const rows: readonly NewRow[] = await methods.page(last);
      if (rows.length > 0) yield pageWith(rows);
      last = rows.at(-1)?.accountId;
    }
  }
  return {
    ...methods,
    rows: () => inPages(pageOf),
    digests: () => inPages((rows) => rows.map(({ packed: _, prefixes: __, ...row }): RowDigest => row)),
  };
}
