import { openMongoRequests } from '../../../src/engines/mongodb/requests.ts';
import { requestJournalContract } from '../../contracts/request-journal.contract.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';

describeWithMongodb('requests on MongoDB', () => {
  requestJournalContract(async () => {
    const database = freshDatabase();
    const journal = () => openMongoRequests({ connection: mongodb(database) });
    return [journal(), journal()];
  });
});
