import { world } from '../../../base/world.ts';
import type { Anchor } from '../../../event-store/store-identity.ts';
import { type RowOf, type StorePlan, tablePlan } from '../../../tables/plan.ts';
import { change, drop, put, type Tables, type Write } from '../../../tables/tables.ts';
import { type DirectoryRows, type NewRow, pageOf, type RowsCheckpoint } from './rows.ts';

const ROWS = tablePlan({
  name: 'directory',
  key: 'account_id',
  columns: {
    account_id: 'integer',
    revision: 'integer',
    position: 'integer',
    digest: 'text',
    packed: 'bytes',
  },
  aside: ['packed'],
  indexes: {},
});
/** The account of each key. Keys that an account no longer has stay listed. */
const KEYS = tablePlan({
  name: 'directory_keys',
  key: 'id',
  columns: { id: 'text', prefix: 'text', account_id: 'integer' },
  indexes: { by_prefix: ['prefix', 'account_id'] },
});
const CHECKPOINT = tablePlan({
  name: 'directory_checkpoint',
  key: 'id',
  columns: {
    ...{ id: 'text', version: 'integer', store_id: 'text', position: 'integer', mac: 'text' },
    anchor: 'text', // JSON
  },
  indexes: {},
});
export const DIRECTORY_STORE: StorePlan = {
  ...{ name: 'directory', version: 1, tables: [ROWS, KEYS, CHECKPOINT], durability: 'normal' },
  withinMs: 10_000, // one operation reads or writes some hundred rows
};
const THE_ONE = 'directory';
const ROWS_A_READ = 500;
const DIGESTS_A_READ = 5_000;
const MAX_OWNERS = 1_000;

/** Opens the rows that all processes on the same tables share. */
export function openDirectoryRows(tables: Tables): DirectoryRows {
  /** Does all of these writes if the checkpoint still has this MAC, otherwise none. */
  const writeIfSame = async (mac: string, writes: readonly Write[]): Promise<boolean> => {
    const isSame = change(CHECKPOINT, THE_ONE, { mac }, { as: { mac } });
    const [isDone = false] = await tables.write([isSame, ...writes], { allOrNone: true });
    return isDone;
  };
  return {
    async checkpoint() {
      const [found] = await tables.get(CHECKPOINT, [THE_ONE]);
      return found && toCheckpoint(found);
    },
    async *rows() {
      const columns = ['account_id', 'revision', 'position', 'packed'] as const;
      const query = { index: 'key', columns, limit: ROWS_A_READ } as const;
      for (let after: { readonly account_id: number } | undefined; ; await world.nextTurn()) {
        const found = await tables.find(ROWS, { ...query, after });
        after = found.at(-1);
        if (after === undefined) return;
        yield pageOf(found.map(({ account_id: accountId, ...row }) => ({ accountId, ...row })));
      }
    },
    async *digests() {
      for (let after: { readonly account_id: number } | undefined; ; await world.nextTurn()) {
        const found = await tables.find(ROWS, { index: 'key', after, limit: DIGESTS_A_READ });
        after = found.at(-1);
        if (after === undefined) return;
        yield found.map(({ account_id: accountId, ...row }) => ({ accountId, ...row }));
      }
    },
    async owners(prefix) {
      const query = { index: 'by_prefix', equals: { prefix }, limit: MAX_OWNERS } as const;
      return (await tables.find(KEYS, query)).map(({ account_id }) => account_id);
    },
    async save(rows, checkpoint, expected) {
      const replaced = put(CHECKPOINT, fromCheckpoint(checkpoint), { as: { mac: expected } });
      const writes = [...rows.map((row) => put(ROWS, fromRow(row))), ...keysOf(rows)];
      const [isDone = false] = await tables.write([replaced, ...writes], { allOrNone: true });
      return isDone;
    },
    async clear(checkpoint) {
      await tables.write([put(CHECKPOINT, fromCheckpoint(checkpoint))]);
      for (let isOurs = true; isOurs; await world.nextTurn()) {
        const rows = await tables.find(ROWS, { index: 'key', columns: ['account_id'], limit: ROWS_A_READ });
        const keys = await tables.find(KEYS, { index: 'key', columns: ['id'], limit: ROWS_A_READ });
        if (rows.length + keys.length === 0) return;
        const gone = [
          ...rows.map((row) => drop(ROWS, row.account_id)),
          ...keys.map(({ id }) => drop(KEYS, id)),
        ];
        isOurs = await writeIfSame(checkpoint.mac, gone);
      }
    },
    close: () => tables.close(),
  };
}

function fromRow({ accountId: account_id, revision, position, digest, packed }: NewRow): RowOf<typeof ROWS> {
  return { account_id, revision, position, digest, packed };
}

/** The writes for the keys of these rows, each key once. */
function keysOf(rows: readonly NewRow[]): Write[] {
  const ids = new Map(
    rows.flatMap(({ accountId: account_id, prefixes }) =>
      prefixes.map((prefix) => [`${prefix}/${account_id}`, { prefix, account_id }] as const),
    ),
  );
  return [...ids].map(([id, key]) => put(KEYS, { id, ...key }));
}

function fromCheckpoint({ storeId, anchor, ...rest }: RowsCheckpoint): RowOf<typeof CHECKPOINT> {
  const { version, position, mac } = rest;
  return { id: THE_ONE, store_id: storeId, anchor: JSON.stringify(anchor), version, position, mac };
}

function toCheckpoint({ id: _, store_id, anchor, ...rest }: RowOf<typeof CHECKPOINT>): RowsCheckpoint {
  return { ...rest, storeId: store_id, anchor: JSON.parse(anchor) as Anchor };
}
