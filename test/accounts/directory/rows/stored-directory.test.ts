import { describe, expect, test } from 'vitest';
import { Directory } from '../../../../src/accounts/directory/fold/directory.ts';
import { DIRECTORY_VERSION, packedRow } from '../../../../src/accounts/directory/rows/packed-row.ts';
import {
  type DirectoryRows,
  type NewRow,
  pageOf,
  rowsIn,
} from '../../../../src/accounts/directory/rows/rows.ts';
import { statesOf } from '../../../../src/accounts/directory/rows/shared-rows.ts';
import { StoredDirectory } from '../../../../src/accounts/directory/rows/stored-directory.ts';
import { opened, PREFIX } from '../../../support/accounts/account-samples.ts';
import { ANCHOR, load, saved, saveOptions } from '../../../support/accounts/saved-directory.ts';
import { macKeys } from '../../../support/accounts/stored-directory.ts';

describe('the stored directory', () => {
  test('is read as it was saved, by another process too', async () => {
    const { other, directory, checkpoint } = await saved();
    const loading = await load(other);
    if (loading.kind !== 'loaded') throw new Error(JSON.stringify(loading));
    expect(loading.loaded.position).toBe(checkpoint.position);
    const restored = new Directory();
    restored.restore(statesOf(loading.loaded), loading.loaded.position);
    expect(restored.key(PREFIX)?.key.active).toBe(false);
    expect([...restored.states()].map(packedRow)).toEqual([...directory.states()].map(packedRow));
  });

  type Saved = Awaited<ReturnType<typeof saved>>;
  const put = async ({ rows, checkpoint }: Saved, changed: readonly NewRow[], head: object = {}) => {
    expect(await rows.save(changed, { ...checkpoint, ...head }, checkpoint.mac)).toBe(true);
  };
  const present = ({ directory }: Saved): NewRow => {
    const state = [...directory.states()][0];
    if (state === undefined) throw new Error('no account');
    return packedRow(state);
  };
  test.each<[string, (m: Saved) => Promise<void>]>([
    ['an older row put back', (m) => put(m, [m.before])],
    ['the older text in the row', (m) => put(m, [{ ...present(m), packed: m.before.packed }])],
    [
      'the older text and digest in the row',
      (m) => put(m, [{ ...present(m), packed: m.before.packed, digest: m.before.digest }]),
    ],
    ['another revision', (m) => put(m, [{ ...present(m), revision: 9 }])],
    ['another position', (m) => put(m, [{ ...present(m), position: 900 }])],
    ['a row more', (m) => put(m, [{ ...m.before, accountId: 8 }])],
    ['a row less', (m) => m.lose(7)],
    [
      'a row of another account',
      async (m) => {
        await m.lose(9);
        await put(m, [{ ...m.before, accountId: 9 }]);
      },
    ],
    ['a later position of the checkpoint', (m) => put(m, [], { position: 900 })],
    ['another anchor', (m) => put(m, [], { anchor: { ...m.checkpoint.anchor, revision: 9 } })],
    ['another MAC', (m) => put(m, [], { mac: 'x' })],
    ['the former checkpoint', (m) => put(m, [], m.former)],
    ['the former MAC', (m) => put(m, [m.before], { mac: m.former.mac })],
    ['another store', (m) => put(m, [], { storeId: 'another' })],
    ['an older version', (m) => put(m, [], { version: DIRECTORY_VERSION - 2 })],
  ])('with %s is not believed, and the next save replaces it', async (_, tamper) => {
    const m = await saved();
    await tamper(m);
    const loading = await load(m.rows);
    if (loading.kind !== 'unusable') throw new Error(loading.kind);
    const { mac } = loading.checkpoint;
    expect(await m.stored.save(m.content, { ...saveOptions, unusable: mac })).toBe(true);
    expect(await load(m.other)).toMatchObject({ kind: 'loaded', loaded: { position: 4 } });
  });

  test('put back as a whole is as of its position: what came later is read from the log', async () => {
    const m = await saved();
    await put(m, [m.before], m.former);
    expect(await load(m.other)).toMatchObject({ kind: 'loaded', loaded: { position: 3 } });
  });

  test('of another master key is not believed, one of a former master key is', async () => {
    const { rows, content } = await saved();
    expect(await load(rows, macKeys(2))).toMatchObject({
      reason: expect.stringContaining('another master key'),
    });
    expect(await load(rows, macKeys())).toMatchObject({
      reason: expect.stringContaining('no master key'),
    });
    expect((await load(rows, macKeys(2, 1))).kind).toBe('loaded');
    const position = 5;
    const later = () => ({ ...content(), position, anchor: { ...ANCHOR, position } });
    const rotated = new StoredDirectory(rows, macKeys(2, 1));
    await rotated.save(later, saveOptions);
    expect((await load(rows)).kind).toBe('loaded'); // nothing has changed, so nothing was saved again
  });

  test('saves only the accounts that have changed, and nothing a second time', async () => {
    const { rows, apply, content, stored } = await saved();
    const written: number[] = [];
    const watched = new StoredDirectory(
      {
        ...rows,
        save(changed, ...rest) {
          for (const { accountId } of changed) written.push(accountId);
          return rows.save(changed, ...rest);
        },
      },
      macKeys(1),
    );
    for (const _ of [1, 2]) expect(await watched.save(content, saveOptions)).toBe(true);
    expect(written).toEqual([]);
    apply(9, 1, { type: 'IntegrationEnabled', data: { account_id: 9 } });
    for (const process of [watched, stored]) await process.save(content, saveOptions);
    expect(written).toEqual([9]);
    expect(await load(rows)).toMatchObject({ kind: 'loaded', loaded: { position: 5 } });
  });

  test('is not replaced by a process that has seen less', async () => {
    const { rows, content, checkpoint } = await saved();
    const behind = new Directory();
    const first = { position: 1, stream: 'account-7', revision: 0 };
    behind.apply({ ...first, decoded: { ok: true, event: opened(), atMs: 0 } });
    const stored = new StoredDirectory(rows, macKeys(1));
    const less = () => ({
      ...content(),
      anchor: { ...ANCHOR, position: 2 },
      states: () => behind.states(),
    });
    expect(await stored.save(less, saveOptions)).toBe(true);
    expect(await rows.checkpoint()).toEqual(checkpoint);
  });

  /** Accounts up to `count`, in more than one commit. */
  function addMany({ apply }: Saved, count: number, revision: number): void {
    for (let id = 100; id < 100 + count; id++)
      apply(
        id,
        revision,
        revision === 0 ? opened('Many', id) : { type: 'IntegrationEnabled', data: { account_id: id } },
      );
  }
  const endsAfter = (rows: DirectoryRows, saves: number): DirectoryRows => {
    let done = 0;
    return {
      ...rows,
      save: (...all) => (done++ < saves ? rows.save(...all) : Promise.reject(new Error('killed'))),
    };
  };

  test('whose save ends between two commits can be started from, and the next save completes it', async () => {
    const m = await saved();
    addMany(m, 1_200, 0);
    const killed = new StoredDirectory(endsAfter(m.rows, 2), macKeys(1));
    await expect(killed.save(m.content, saveOptions)).rejects.toThrow('killed');
    const loading = await load(m.other);
    if (loading.kind !== 'loaded') throw new Error(JSON.stringify(loading));
    expect(loading.loaded.position).toBe(4);
    expect([...statesOf(loading.loaded)]).toHaveLength(1_002);
    expect(await m.stored.save(m.content, saveOptions)).toBe(true);
    expect(await load(m.other)).toMatchObject({ loaded: { position: 1_204 } });
  });

  test('is anchored at the newest event that a row may hold, however late that was applied', async () => {
    const m = await saved();
    addMany(m, 1_200, 0);
    let saves = 0;
    const rows: DirectoryRows = {
      ...m.rows,
      save(...all) {
        if (saves++ === 0) m.apply(1_299, 1, { type: 'IntegrationEnabled', data: { account_id: 1_299 } });
        return m.rows.save(...all);
      },
    };
    await new StoredDirectory(rows, macKeys(1)).save(m.content, saveOptions);
    const newest = (await Array.fromAsync(m.other.rows())).flatMap(rowsIn).map(({ position }) => position);
    expect(await m.other.checkpoint()).toMatchObject({ anchor: { position: Math.max(...newest) } });
  });

  test('whose first save ends between two commits is not there, and the next save begins anew', async () => {
    const m = await saved();
    addMany(m, 1_200, 0);
    await m.rows.clear({ ...m.checkpoint, version: 0, mac: 'begun' });
    const killed = new StoredDirectory(endsAfter(m.rows, 2), macKeys(1));
    await expect(killed.save(m.content, saveOptions)).rejects.toThrow('killed');
    expect((await load(m.other)).kind).toBe('none');
    await m.lose(100);
    expect(await m.stored.save(m.content, saveOptions)).toBe(true);
    expect(await load(m.other)).toMatchObject({ loaded: { position: 1_204 } });
  });

  test('is saved by one of two processes at once; the other one finds it saved', async () => {
    const m = await saved();
    addMany(m, 1_200, 0);
    const another = new StoredDirectory(m.other, macKeys(1));
    const both = () =>
      Promise.all([m.stored.save(m.content, saveOptions), another.save(m.content, saveOptions)]);
    expect(await both()).toContain(true);
    expect(await both()).toEqual([true, true]);
    expect(await load(m.other)).toMatchObject({ loaded: { position: 1_204 } });
  });

  test('that is saved while it is read is read again', async () => {
    const m = await saved();
    addMany(m, 600, 0);
    let reads = 0;
    const meanwhile: DirectoryRows = {
      ...m.other,
      async *rows() {
        const some = (await Array.fromAsync(m.other.rows())).flatMap(rowsIn);
        if (reads++ === 0) await m.stored.save(m.content, saveOptions);
        if (reads === 1) yield pageOf(some.slice(1));
        else yield* m.other.rows();
      },
    };
    expect(await load(meanwhile)).toMatchObject({ kind: 'loaded', loaded: { position: 604 } });
    expect(reads).toBe(2);
  });

  test('stops between two commits where the process is asked to end', async () => {
    const m = await saved();
    addMany(m, 1_200, 0);
    const ending = new AbortController();
    const rows = {
      ...m.rows,
      save(...all: Parameters<DirectoryRows['save']>) {
        ending.abort();
        return m.rows.save(...all);
      },
    };
    const stopped = new StoredDirectory(rows, macKeys(1));
    await expect(stopped.save(m.content, { ...saveOptions, signal: ending.signal })).rejects.toThrow(/abort/);
    expect((await load(m.other)).kind).toBe('loaded');
  });

  test('of a newer version of the service is left to it', async () => {
    const m = await saved();
    await put(m, [], { version: 99 });
    expect(await m.stored.save(m.content, saveOptions)).toBe(true);
    expect((await m.rows.checkpoint())?.version).toBe(99);
  });
});
