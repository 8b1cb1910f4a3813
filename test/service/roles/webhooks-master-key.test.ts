import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { bindStore, trustMasterKey } from '../../../src/service/stores/store-binding.ts';
import { answerWith } from '../../support/deliveries/webhook-receiver.ts';
import { replacing } from '../../support/interposed.ts';
import { ACCOUNT, machine, PATH } from '../../support/service/webhooks-machine.ts';
import { until } from '../../support/waiting.ts';

const AUTHOR = { actor: 'test', command: 'test' };

describe('a master key that is not given any more', () => {
  test('while a webhook needs it: the role does not start, and no delivery fails for it', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const rotated: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await expect(m.start(m.engines, rotated).ended).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
      message: expect.stringContaining('FUEL_MASTER_KEY'),
    });
    expect(await m.logged()).toEqual([]);
    m.start();
    await m.settled('delivered');
  });

  test('and that this store never had: the role starts, and what cannot be signed for that key ends as failed', async () => {
    const m = await machine();
    await bindStore(m.engines.store(), m.config, { clock: systemClock });
    await m.provision();
    await m.record(501);
    const stream = `account-${ACCOUNT}`;
    const history = await m.engines.store().readStream(stream);
    const set = JSON.stringify(history.find(({ type }) => type === 'WebhookUrlSet')?.data);
    const data = JSON.parse(set.replace(/"master_key_id":"\w+"/, '"master_key_id":"deadbeef"'));
    const event = newEvent({ type: 'WebhookSecretRewrapped', data }, AUTHOR, Date.now());
    await m.engines.store().append([{ stream, expected: 'any', events: [event] }]);
    const run = m.start();
    await m.settled('failed');
    expect(await m.logged()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
    await run.stop();
    await expect(run.ended).resolves.toBeUndefined();
  });

  test('is noticed before any attempt: a delivery that is due stays as it is', async () => {
    const m = await machine();
    m.receiver.answer(PATH, answerWith(503));
    await m.provision();
    await m.record(501);
    const first = m.start();
    await until(async () => (await m.attempts()).length > 0);
    await first.stop();
    const before = await m.attempts();
    const store = m.engines.store();
    const slow = replacing(store, {
      async readStream(...given) {
        await new Promise((resolve) => setTimeout(resolve, 150)); // longer than the wait for the next attempt
        return store.readStream(...given);
      },
    });
    const rotated: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await expect(m.start({ ...m.engines, store: () => slow }, rotated).ended).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
    });
    expect([await m.logged(), await m.attempts()]).toMatchObject([[{ state: 'pending' }], before]);
  });

  test('and was said to be lost: the role starts, and what cannot be signed ends as failed', async () => {
    const m = await machine();
    await m.provision();
    await m.record(501);
    const config: Config = { ...m.config, FUEL_MASTER_KEY: [randomBytes(32)] };
    await trustMasterKey(m.engines.store(), config, { author: AUTHOR, reason: 'lost', clock: systemClock });
    m.start(m.engines, config);
    await m.settled('failed');
    expect(await m.logged()).toMatchObject([{ reason: expect.stringContaining('could not be signed') }]);
    expect(m.receiver.to(PATH)).toEqual([]);
  });
});
