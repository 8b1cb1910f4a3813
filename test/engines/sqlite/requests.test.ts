import { join } from 'node:path';
import { openSqliteRequests } from '../../../src/engines/sqlite/requests.ts';
import { requestJournalContract } from '../../contracts/request-journal.contract.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

requestJournalContract(async () => {
  const path = join(temporaryFolder(), 'requests.db');
  return [openSqliteRequests({ path }), openSqliteRequests({ path })];
});
