import { openRequestJournal, REQUESTS_STORE } from '../../src/pull/stored-requests.ts';
import { requestJournalContract } from '../contracts/request-journal.contract.ts';
import { onEachTables } from '../support/engines/each-tables.ts';

onEachTables((empty) => {
  requestJournalContract(async () => {
    const stores = empty();
    const journal = () => openRequestJournal(stores.open(REQUESTS_STORE));
    return [journal(), journal()];
  });
});
