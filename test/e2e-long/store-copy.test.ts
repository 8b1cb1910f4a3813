import { describe, expect, inject, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { freshDatabase, mongodbUrl } from '../support/engines/mongodb.ts';
import { freshSchema, postgresUrl } from '../support/engines/postgresql/postgresql.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import type { Env } from '../support/service/commands.ts';
import { idsOf } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const TABLES = [
  {
    name: 'MongoDB',
    url: inject('mongodbUrl'),
    settings: () => ({ MONGODB_URL: mongodbUrl(), MONGODB_DATABASE: freshDatabase() }),
  },
  {
    name: 'PostgreSQL',
    url: inject('postgresUrl'),
    settings: () => ({ POSTGRES_URL: postgresUrl(), FUEL_POSTGRES_SCHEMA: freshSchema() }),
  },
] as const;

describe.each(TABLES)(
  'fuel store copy into EventStoreDB (its double) and $name',
  ({ url, settings: tables }) => {
    it.skipIf(onServers || url === undefined)(
      'moves a service that is stopped: it works on the engines as before, and no longer on its files',
      async () => {
        const push = await PushService.start();
        const { service, receiver } = push;
        const { account, key, path } = await push.customer(1);
        const ids = await push.push(account, 3);
        await push.settled(account, 'delivered', 3);
        const double = await startEventStoreDbDouble();
        try {
          const env = { EVENTSTORE_URL: double.url, ...tables() };
          const copy = (settings: Env = env) => service.fuel(['store', 'copy', '--json'], { env: settings });
          const refusal = (text: string) => ({ code: 1, stdout: '', stderr: expect.stringContaining(text) });
          expect(await copy()).toMatchObject(refusal('Stop the service first'));
          expect(await service.stop()).toBe(0);
          await push.closeFiles();
          expect((await copy({})).code).toBe(1); // no engine is named
          expect(await copy({ ...env, EVENTSTORE_URL: '' })).toMatchObject(
            refusal('Set EVENTSTORE_URL, and MONGODB_URL or POSTGRES_URL'),
          );
          const { code, json, stderr } = await copy();
          expect([code, json]).toEqual([0, { events: expect.any(Number), deliveries: 3, verified: true }]);
          expect(stderr).not.toContain('copied before');

          service.launch(); // without the engines' addresses
          expect(await service.ended()).toBe(1);
          expect(service.output).toMatch(/esdb:\/\/.*fuel store unmark.*STORE_MOVED/);

          await service.start(env);
          const today = `from=${new Date(Date.now() - 3_600_000).toISOString()}&to=${new Date().toISOString()}`;
          const page = () => service.get(`/transactions?${today}`, { key });
          await until(async () => (await page()).status === 200); // once the view is built
          expect(new Set(idsOf((await page()).body))).toEqual(new Set(ids));
          expect((await service.fuel(['verify', '--json'], { env })).code).toBe(0);
          expect(receiver.deliveriesTo(path).size).toBe(3);
          expect(await copy()).toMatchObject({
            code: 0,
            json,
            stderr: expect.stringContaining('copied before'),
          });
          expect(await service.stop()).toBe(0);
        } finally {
          await double.stop();
        }
      },
    );
  },
);
