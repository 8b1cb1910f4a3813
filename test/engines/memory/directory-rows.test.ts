import { MemoryRows, openMemoryDirectoryRows } from '../../../src/engines/memory/directory-rows.ts';
import { directoryRowsContract } from '../../contracts/directory-rows.contract.ts';

directoryRowsContract(async () => {
  const stored = new MemoryRows();
  return {
    rows: openMemoryDirectoryRows(stored),
    second: () => openMemoryDirectoryRows(stored),
    lose: async (accountId) => void stored.rows.delete(accountId),
  };
});
