import { expect, test } from 'vitest';
import { rowsIn } from '../../../src/accounts/directory/rows/rows.ts';
import { DIRECTORY_STORE, openDirectoryRows } from '../../../src/accounts/directory/rows/stored-rows.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { directoryRowsContract } from '../../contracts/directory-rows.contract.ts';
import { onEachTables } from '../../support/engines/each-tables.ts';
import { replacing } from '../../support/interposed.ts';

onEachTables((empty) => {
  directoryRowsContract(async () => {
    const stores = empty();
    const second = () => openDirectoryRows(stores.open(DIRECTORY_STORE));
    return { rows: second(), second };
  });

  test('a row that another process saves between the look at it and its removal stays', async () => {
    const stores = empty();
    const other = openDirectoryRows(stores.open(DIRECTORY_STORE));
    const row = { accountId: 7, revision: 0, position: 1, digest: 'd', prefixes: [] };
    const head = {
      ...{ version: 5, storeId: 's', position: 1 },
      anchor: { position: 1, stream: 'account-7', revision: 0, recordedAtMs: 1 },
    };
    await other.clear({ ...head, mac: 'one' });
    await other.save([{ ...row, packed: Buffer.from('old') }], { ...head, mac: 'two' }, 'one');
    const tables = stores.open(DIRECTORY_STORE);
    let removals = 0;
    const write: Tables['write'] = async (writes, options) => {
      if (options?.allOrNone && removals++ === 0) {
        const saved = [{ ...row, packed: Buffer.from('new') }];
        expect(await other.save(saved, { ...head, mac: 'four' }, 'three')).toBe(true);
      }
      return tables.write(writes, options);
    };
    const watched = replacing(tables, { write });
    await openDirectoryRows(watched).clear({ ...head, mac: 'three' });
    const [kept] = (await Array.fromAsync(other.rows())).flatMap(rowsIn);
    expect([removals, kept && Buffer.from(kept.packed).toString()]).toEqual([1, 'new']);
  });
});
