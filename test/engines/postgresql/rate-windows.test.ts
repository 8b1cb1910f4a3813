import { expect, onTestFinished, test, vi } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import { createPostgresRateWindows } from '../../../src/engines/postgresql/rate-windows.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';

describeWithPostgres('rate windows on PostgreSQL', () => {
  test('take one statement per hit', async () => {
    const windows = createPostgresRateWindows({ connection: postgresql() });
    await windows.hit('key', 5);
    const asked = vi.spyOn(PostgresConnection.prototype, 'use');
    onTestFinished(() => asked.mockRestore());
    for (let hits = 0; hits < 3; hits++) await windows.hit('key', 5);
    expect(asked).toHaveBeenCalledTimes(3);
  });

  test('that have ended are removed by the first hit of a process', async () => {
    const schema = freshSchema();
    const connection = postgresql(schema);
    const run = (sql: string) => connection.use(5_000, (statement) => statement({ sql }));
    const windows = createPostgresRateWindows({ connection });
    for (const id of ['a', 'b', 'c']) await windows.hit(id, 5);
    await run(`UPDATE ${schema}.rate_windows SET ends_at = now() - interval '1 s'`);
    await createPostgresRateWindows({ connection: postgresql(schema) }).hit('d', 5);
    expect(await run(`SELECT id FROM ${schema}.rate_windows`)).toEqual([{ id: 'd' }]);
  });
});
