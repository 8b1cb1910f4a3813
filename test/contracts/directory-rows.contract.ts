import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DIRECTORY_VERSION } from '../../src/accounts/directory/rows/packed-row.ts';
import {
  type DirectoryRows,
  type NewRow,
  type RowsCheckpoint,
  rowsIn,
} from '../../src/accounts/directory/rows/rows.ts';

export interface RowsUnderTest {
  readonly rows: DirectoryRows;
  /** Opens the same rows, as another process does. */
  readonly second: () => DirectoryRows;
}

const ANCHOR = { position: 12, stream: 'account-7', revision: 3, recordedAtMs: 5_000 };
const CHECKPOINT: RowsCheckpoint = {
  version: DIRECTORY_VERSION,
  storeId: '$store',
  position: 2 ** 40,
  anchor: ANCHOR,
  mac: 'one',
};

/** The contract of the rows of a directory. `open` returns none, and the suite closes them. */
export function directoryRowsContract(open: () => Promise<RowsUnderTest>): void {
  async function started() {
    const { rows, second } = await open();
    onTestFinished(() => rows.close());
    const other = second();
    onTestFinished(() => other.close());
    return { rows, other };
  }
  const row = (accountId: number, text = 'text', prefixes: readonly string[] = []): NewRow => ({
    ...{
      accountId,
      revision: 3,
      position: 2 ** 41,
      packed: Buffer.from(text),
      digest: `of ${text}`,
      prefixes,
    },
  });
  const all = async (rows: DirectoryRows) =>
    (await Array.fromAsync(rows.rows()))
      .flatMap(rowsIn)
      .map((row) => ({ ...row, packed: Buffer.from(row.packed).toString() }));

  describe('the rows of a directory', () => {
    test('that are cleared keep what another process saves meanwhile', async () => {
      const { rows, other } = await started();
      await rows.clear({ ...CHECKPOINT, mac: 'one' });
      const many = Array.from({ length: 1_600 }, (_, n) => row(n + 1, 'old'));
      expect(await rows.save(many, { ...CHECKPOINT, mac: 'two' }, 'one')).toBe(true);
      const clearing = rows.clear({ ...CHECKPOINT, mac: 'three' });
      while ((await other.checkpoint())?.mac !== 'three') await nextTurn();
      expect(await other.save([row(1, 'new')], { ...CHECKPOINT, mac: 'four' }, 'three')).toBe(true);
      await clearing;
      expect((await all(rows)).find(({ accountId }) => accountId === 1)).toMatchObject({ packed: 'new' });
    });

    test('where nothing was saved there is nothing', async () => {
      const { rows } = await started();
      expect(await rows.checkpoint()).toBeUndefined();
      expect([await all(rows), await Array.fromAsync(rows.digests()), await rows.owners('x')]).toEqual([
        [],
        [],
        [],
      ]);
    });

    test('what one process saves another reads, in the order of the accounts, however many', async () => {
      const { rows, other } = await started();
      await rows.clear(CHECKPOINT);
      const ids = Array.from({ length: 1_201 }, (_, index) => (index * 7) % 1_201);
      expect(
        await rows.save(
          ids.map((id) => row(id, `Öffi\n${id}`)),
          { ...CHECKPOINT, mac: 'two' },
          'one',
        ),
      ).toBe(true);
      expect(await other.checkpoint()).toEqual({ ...CHECKPOINT, mac: 'two' });
      const inOrder = ids.toSorted((a, b) => a - b);
      const place = { revision: 3, position: 2 ** 41 };
      expect(await all(other)).toEqual(
        inOrder.map((accountId) => ({ accountId, ...place, packed: `Öffi\n${accountId}` })),
      );
      expect((await Array.fromAsync(other.digests())).flat()).toEqual(
        inOrder.map((accountId) =>
          expect.objectContaining({ accountId, ...place, digest: `of Öffi\n${accountId}` }),
        ),
      );
    });

    test('a row that is saved again replaces the former one, and only it', async () => {
      const { rows } = await started();
      await rows.clear(CHECKPOINT);
      await rows.save([row(7), row(9)], CHECKPOINT, 'one');
      for (const _ of [1, 2]) await rows.save([row(7, 'later')], CHECKPOINT, 'one');
      expect((await all(rows)).map(({ packed }) => packed)).toEqual(['later', 'text']);
    });

    test('of two that save at once one does, whole, and the other one nothing', async () => {
      const { rows, other } = await started();
      await rows.clear(CHECKPOINT);
      const saved = await Promise.all([
        rows.save([row(1, 'mine'), row(2, 'mine')], { ...CHECKPOINT, mac: 'mine' }, 'one'),
        other.save([row(1, 'yours'), row(2, 'yours')], { ...CHECKPOINT, mac: 'yours' }, 'one'),
      ]);
      expect(saved.toSorted()).toEqual([false, true]);
      const winner = saved[0] ? 'mine' : 'yours';
      expect((await all(rows)).map(({ packed }) => packed)).toEqual([winner, winner]);
      expect((await rows.checkpoint())?.mac).toBe(winner);
    });

    test('the owner of a prefix is found, also after its row was saved again', async () => {
      const { rows } = await started();
      await rows.clear(CHECKPOINT);
      await rows.save(
        [row(7, 'a', ['aaaaaaaaaa', 'bbbbbbbbbb']), row(9, 'b', ['cccccccccc'])],
        CHECKPOINT,
        'one',
      );
      await rows.save([row(7, 'c', ['aaaaaaaaaa', 'bbbbbbbbbb'])], CHECKPOINT, 'one');
      expect(
        await Promise.all(['bbbbbbbbbb', 'cccccccccc', 'bbbbb'].map((prefix) => rows.owners(prefix))),
      ).toEqual([[7], [9], []]);
    });

    test('clearing removes every row and puts the checkpoint; done again it changes nothing', async () => {
      const { rows } = await started();
      await rows.clear(CHECKPOINT);
      await rows.save(
        Array.from({ length: 1_100 }, (_, id) => row(id, 'x', ['aaaaaaaaaa'])),
        CHECKPOINT,
        'one',
      );
      for (const _ of [1, 2]) {
        await rows.clear({ ...CHECKPOINT, mac: 'new' });
        expect([await all(rows), await rows.owners('aaaaaaaaaa')]).toEqual([[], []]);
        expect((await rows.checkpoint())?.mac).toBe('new');
      }
    });
  });
}
