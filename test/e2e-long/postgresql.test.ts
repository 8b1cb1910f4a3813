import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { Postgres } from '../support/engines/postgresql/server.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import type { Env } from '../support/service/commands.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const EVENTS = ['embedded events', 'EventStoreDB (its double)'] as const;

/** Needs a PostgreSQL that the test may kill. */
describe.runIf(inject('postgresBinaries') !== undefined)('a service on PostgreSQL', () => {
  it.each(EVENTS)(
    'and %s answers 503 within 2 s while it is killed, then everything continues, nothing is lost or doubled',
    async (events) => {
      const server = await new Postgres({ binaries: inject('postgresBinaries') ?? '' }).start();
      onTestFinished(() => server.remove());
      let env: Env = { POSTGRES_URL: server.url };
      if (events !== 'embedded events') {
        const double = await startEventStoreDbDouble();
        onTestFinished(() => double.stop());
        env = { ...env, EVENTSTORE_URL: double.url };
      }
      const push = await PushService.start(env);
      const { account, key, path } = await push.customer(1);
      await push.push(account, 3);
      await push.settled(account, 'delivered', 3);
      const ask = async () => {
        const askedAtMs = Date.now();
        const { status } = await push.service.get(`/transactions?${SEPTEMBER}`, { key });
        return { status, tookMs: Date.now() - askedAtMs };
      };
      expect((await ask()).status).toBe(200);
      await server.kill();
      const answers = [await ask(), await ask(), await ask()];
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
      expect(Math.min(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(2_000);
      await until(async () => {
        const { status, body } = await push.service.ops('/readyz');
        return status === 503 && body.checks.postgresql === false;
      }); // a result of the health check is kept for a second
      await push.record(push.made(account, 5), { wait: false });
      await server.start();
      await until(async () => (await ask()).status === 200);
      await push.settled(account, 'delivered', 8);
      // An attempt whose outcome could not be recorded may come again, under the same id alone.
      const bodies = push.receiver.to(path).map(({ body }) => body);
      expect(new Set(bodies.map(({ data }) => data.transaction.id)).size).toBe(8);
      expect(new Set(bodies.map(({ id }) => id)).size).toBe(8);
      await until(async () => (await push.service.fuel(['verify', '--json'])).code === 0);
      const doctor = await push.service.fuel(['doctor', '--json']);
      expect(doctor.stdout).toMatch(/PostgreSQL \d+\.\d+ answers/);
      expect(doctor.stdout).toContain('not selected: PostgreSQL is');
    },
    120_000,
  );
});
