import { expect, onTestFinished, test, vi } from 'vitest';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { coordinationContract } from '../../contracts/coordination.contract.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';

const HOUR_MS = 3_600_000;

function coordinationIn(schema = freshSchema()) {
  const connection = postgresql(schema);
  const coordination = openCoordination(openPostgresTables(CONTROL_STORE, { connection }));
  /** Lets time pass by making everything that the server has dated older. */
  const pass = (ms: number): Promise<void> =>
    connection.use(5_000, async (run) => {
      const values = [ms];
      const earlier = (column: string) => `SET ${column} = ${column} - $1 * interval '1 ms'`;
      const isOver = `WHERE expires_at < '200000-01-01'`;
      await run({ sql: `UPDATE ${schema}.leases ${earlier('expires_at')} ${isOver}`, values });
      await run({ sql: `UPDATE ${schema}.live_processes ${earlier('seen_at')}`, values });
    });
  return { coordination, pass };
}

describeWithPostgres('coordination on PostgreSQL', () => {
  coordinationContract(async () => {
    const schema = freshSchema();
    const { coordination, pass } = coordinationIn(schema);
    const second = () => coordinationIn(schema).coordination;
    return { coordination, second, pass, nowMs: () => Date.now() };
  });

  test.each([-HOUR_MS, HOUR_MS])(
    'goes by the server’s clock, also for a process whose clock is %i ms ahead',
    async (apartMs) => {
      const { coordination, pass } = coordinationIn();
      onTestFinished(() => coordination.close());
      const serverMs = Date.now();
      vi.useFakeTimers({ toFake: ['Date'], now: serverMs + apartMs });
      onTestFinished(() => void vi.useRealTimers());
      expect(await coordination.acquire('projector', 'a', 10_000)).toBe(true);
      expect(await coordination.acquire('projector', 'b', 10_000)).toBe(false);
      const held = await coordination.holder('projector');
      expect(Math.abs((held?.expiresAtMs ?? 0) - serverMs - 10_000)).toBeLessThan(10_000);
      await pass(30_000);
      expect(await coordination.acquire('projector', 'b', 10_000)).toBe(true);
      const place = { pid: 1, host: 'elsewhere', roles: [], startedAtMs: 0, isReady: true };
      await coordination.report({ ...place, id: 'p', seenAtMs: Date.now() });
      expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['p']);
      await pass(5_000);
      expect(await coordination.live(5_000)).toEqual([]);
    },
  );
});
