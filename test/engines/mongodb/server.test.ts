import { inject } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { createMongoRateWindows } from '../../../src/engines/mongodb/rate-windows.ts';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { tableServerContract } from '../../contracts/table-server.contract.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../../support/engines/mongodb.ts';

const binary = inject('mongodBinary');

describeWithMongodb('MongoDB', () => {
  tableServerContract({
    url: mongodbUrl,
    freshPlace: freshDatabase,
    connect: (url, database) => new MongoConnection({ url, database }),
    ask: (connection) => connection.use((db) => db.command({ ping: 1 })),
    openTables: openMongoTables,
    createWindows: createMongoRateWindows,
    pass: (connection, ms) =>
      connection.use((db) =>
        db
          .collection('rate_windows')
          .updateMany({}, [{ $set: { ends_at: { $subtract: ['$ends_at', ms] } } }]),
      ),
    forgetWindows: (connection) => connection.use((db) => db.collection('rate_windows').deleteMany({})),
    startOwn: binary === undefined ? undefined : () => new Mongod({ binary }).start(),
  });
});
