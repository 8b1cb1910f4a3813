import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { transactionStream } from '../../src/domain/transaction-events.ts';
import { openEventStoreDb } from '../../src/engines/eventstoredb/event-store.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { answerWith } from '../support/deliveries/webhook-receiver.ts';
import { describeWithMongodb, freshDatabase, mongodbUrl } from '../support/engines/mongodb.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { startFuel } from '../support/service/commands.ts';
import { confirmed, idsOf, linesOf } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const MANY = 800;
const FIRST = 100_000;

describeWithMongodb('fuel store copy into EventStoreDB (its double) and MongoDB', () => {
  it('moves a service: nothing is lost, shown differently or sent twice, although it was killed meanwhile', async () => {
    const push = await PushService.start();
    const { service, receiver } = push;
    const { account, key, path } = await push.customer(1);
    await push.push(account, 3);
    await push.settled(account, 'delivered', 3);
    receiver.answer(path, answerWith(500));
    await push.push(account, 1);
    await push.reached(account, 'failed', 1);
    receiver.answer(path, answerWith(200));
    await service.done(['account', 'integration', String(account), 'off', '--wait']);
    const [held = 0] = await push.push(account, 1);
    await push.reached(account, 'held', 1);
    const others = Array.from({ length: MANY }, (_, n) => confirmed(FIRST + n, { account_id: 2 }));
    await push.record(others);

    const double = await startEventStoreDbDouble();
    try {
      const env = {
        EVENTSTORE_URL: double.url,
        MONGODB_URL: mongodbUrl(),
        MONGODB_DATABASE: freshDatabase(),
      };
      const copy = (settings = env) => service.fuel(['store', 'copy', '--json'], { env: settings });
      expect(await copy()).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/stop the service/),
      });
      expect(await service.stop()).toBe(0);
      await push.closeFiles();
      expect((await service.fuel(['store', 'copy'])).code).toBe(1); // no engine is named
      const half = await copy({ ...env, EVENTSTORE_URL: '' });
      expect(half).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/EVENTSTORE_URL and MONGODB_URL/),
      });

      const killed = startFuel(['store', 'copy'], { dataDir: service.dataDir, env });
      const target = openEventStoreDb({ url: double.url, clock: systemClock, log: silentLog });
      const middle = transactionStream(FIRST + MANY / 2);
      await until(async () => (await target.readStream(middle)).length > 0, 30_000);
      killed.child.kill('SIGKILL');
      await target.close();
      expect((await killed.result).code).toBe(null);
      service.launch(env);
      expect(await service.ended()).toBe(1);
      expect(service.output).toContain('fuel store copy');

      const { code, json, stderr } = await copy();
      expect([code, json]).toEqual([0, { events: expect.any(Number), deliveries: 5, verified: true }]);
      expect(json.events).toBeGreaterThan(MANY);
      expect(stderr).not.toContain('copied before');

      service.launch(); // without the engines' addresses
      expect(await service.ended()).toBe(1);
      expect(service.output).toMatch(/STORE_MOVED.*esdb:\/\/.*fuel store unmark/);

      const sent = receiver.hooks.length;
      await service.start(env);
      const on = ['account', 'integration', String(account), 'on', '--wait'];
      expect((await service.fuel(on, { env })).code).toBe(0);
      const made = push.made(account, 1);
      const lines = linesOf(made);
      const imported = await service.fuel(['transaction', 'import', '-', '--wait'], { env, stdin: lines });
      expect(imported.code).toBe(0);
      await until(async () => receiver.hooks.length >= sent + 2, 15_000);
      const verified = await service.fuel(['verify', 'deliveries', '--json'], { env });
      expect(verified).toMatchObject({
        code: 0,
        json: { deliveries: { owed: 6, delivered: 5, failed: 1, missing: 0, surplus: 0 } },
      });
      const late = receiver.hooks.slice(sent).map(({ body }) => body.data.transaction.id);
      expect(late.sort((a, b) => a - b)).toEqual([held, Number(made[0]?.data.transaction_id)]);
      const today = `from=${new Date(Date.now() - 3_600_000).toISOString()}&to=${new Date().toISOString()}`;
      expect(idsOf((await service.get(`/transactions?${today}`, { key })).body)).toHaveLength(6);

      const again = await copy();
      expect(again).toMatchObject({ code: 0, json, stderr: expect.stringContaining('copied before') });
      expect(await service.stop()).toBe(0);
    } finally {
      await double.stop();
    }
  }, 60_000);
});
