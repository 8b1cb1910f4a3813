import { openMongoDirectoryRows } from '../../../src/engines/mongodb/directory-rows.ts';
import { directoryRowsContract } from '../../contracts/directory-rows.contract.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';

describeWithMongodb('the rows of a directory on MongoDB', () => {
  directoryRowsContract(async () => {
    const database = freshDatabase();
    const connection = mongodb(database);
    return {
      rows: openMongoDirectoryRows({ connection }),
      second: () => openMongoDirectoryRows({ connection: mongodb(database) }),
      lose: (accountId) =>
        connection.use(async (db) => {
          await db.collection<{ _id: number }>('directory').deleteOne({ _id: accountId });
        }),
    };
  });
});
