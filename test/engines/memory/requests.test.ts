import { openMemoryRequests } from '../../../src/engines/memory/requests.ts';
import type { RequestRow } from '../../../src/pull/request-journal.ts';
import { requestJournalContract } from '../../contracts/request-journal.contract.ts';

requestJournalContract(async () => {
  const stored: RequestRow[] = [];
  return [openMemoryRequests(stored), openMemoryRequests(stored)];
});
