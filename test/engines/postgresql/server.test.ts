import { inject } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { createPostgresRateWindows } from '../../../src/engines/postgresql/rate-windows.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { tableServerContract } from '../../contracts/table-server.contract.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresUrl,
} from '../../support/engines/postgresql/postgresql.ts';
import { Postgres } from '../../support/engines/postgresql/server.ts';

const binaries = inject('postgresBinaries');

describeWithPostgres('PostgreSQL', () => {
  const run = (connection: PostgresConnection, sql: string, ...values: unknown[]) =>
    connection.use(5_000, (statement) => statement({ sql, values }));
  tableServerContract({
    url: postgresUrl,
    freshPlace: freshSchema,
    connect: (url, schema) => new PostgresConnection({ url, schema }),
    ask: (connection) => run(connection, 'SELECT 1'),
    openTables: openPostgresTables,
    createWindows: createPostgresRateWindows,
    pass: (connection, ms) =>
      run(
        connection,
        `UPDATE ${connection.schema}.rate_windows SET ends_at = ends_at - $1 * interval '1 ms'`,
        ms,
      ),
    forgetWindows: (connection) => run(connection, `DELETE FROM ${connection.schema}.rate_windows`),
    startOwn: binaries === undefined ? undefined : () => new Postgres({ binaries }).start(),
  });
});
