import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { world } from '../../../src/base/world.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import type { Mailer } from '../../../src/push/notices/mailer.ts';
import { NOTICES } from '../../../src/push/notices/notifier.ts';
import { onKey } from '../../support/accounts/account-samples.ts';
import { unavailable } from '../../support/deliveries/push-machine.ts';
import { record } from '../../support/event-store/store-events.ts';
import { interposed, Steps } from '../../support/interposed.ts';
import { CONTACTS, DISABLED, OPERATOR, startNotifier, WAIT } from '../../support/service/running-notifier.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';

const LEASE_MS = 12_000;
const BOTH = ['customer', 'operator'];

async function withServer() {
  const smtp = await startSmtpServer();
  const recipients = () => smtp.mails.map(({ to }) => to);
  return { smtp, recipients, ...(await startNotifier({ smtpUrl: smtp.url })) };
}

/** Its steps, and what is done before each. */
function stepping(
  before: (step: string) => void | Promise<void>,
  ofCoordination: readonly (keyof Coordination)[] = ['moveCheckpoint'],
) {
  return {
    store: (store: EventStore) => interposed(store, ['append'], before),
    coordination: (whole: Coordination) => interposed(whole, ofCoordination, before),
    send: (send: Mailer['send']) => async (mail: Parameters<Mailer['send']>[0]) => {
      await before('send');
      return send(mail);
    },
  };
}

describe('a notifier that is killed', () => {
  test('before any of its steps leaves the rest to the next, which repeats a mail only where no record was made', async () => {
    const whole = new Steps();
    const all = await withServer();
    await all.record(DISABLED);
    const run = all.run(stepping(whole.before));
    await vi.waitUntil(all.isDone, WAIT);
    await run.stop();
    expect(whole.done).toEqual(['send', 'append', 'send', 'append', 'moveCheckpoint']);
    for (const most of whole.done.keys()) {
      const { run, record, recipients, sent, isDone, coordination } = await withServer();
      await record(DISABLED);
      const steps = new Steps(most);
      const gone = Promise.withResolvers<void>();
      onTestFinished(() => gone.resolve());
      let isKilled = false;
      const dieAt = async (step: string): Promise<void> => {
        if (!isKilled && steps.done.length < most) return steps.before(step);
        isKilled = true;
        await gone.promise; // nothing of it is done any more
        throw new FuelError('STORE_CLOSED', 'killed');
      };
      run({ ...stepping(dieAt), holder: 'killed' });
      await vi.waitUntil(() => isKilled, WAIT);
      await coordination.release(NOTICES, 'killed');
      run({ holder: 'next' });
      await vi.waitUntil(isDone, WAIT);
      const isRepeated = steps.done.at(-1) === 'send';
      expect([most, recipients().length, await sent()]).toEqual([most, isRepeated ? 3 : 2, BOTH]);
      gone.resolve();
    }
  });
});

describe('a notifier that is asked to stop', () => {
  test('waits for the mail that is being sent and its record, and begins no other: the next start does', async () => {
    const { run, record, recipients, sent, isDone } = await withServer();
    await record(DISABLED, onKey('WebhookEnabled'));
    const sending = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const first = run({
      send: (send) => async (mail) => {
        sending.resolve();
        await go.promise;
        return send(mail);
      },
    });
    await sending.promise;
    const stopped = first.stop();
    go.resolve();
    await stopped;
    expect([recipients(), await sent()]).toEqual([[CONTACTS], ['customer']]);
    run();
    await vi.waitUntil(isDone, WAIT);
    expect(recipients()).toEqual([CONTACTS, [OPERATOR], CONTACTS, [OPERATOR]]);
  });
});

describe('of several notifiers', () => {
  test('one is active, and another continues at once when that one stops', async () => {
    const { smtp, run, record, logged, isDone, coordination } = await withServer();
    const one = run({ holder: 'one' });
    await logged('notices is active');
    run({ holder: 'two' });
    await record(DISABLED);
    await vi.waitUntil(isDone, WAIT);
    expect((await coordination.holder(NOTICES))?.holder).toBe('one');
    await one.stop();
    await logged('notices is active', 2); // the clock does not move: the lease was released, it did not expire
    await record(onKey('WebhookEnabled'));
    await smtp.received(4);
    await vi.waitUntil(isDone, WAIT);
    expect(smtp.mails).toHaveLength(4);
  });

  test('one that has lost its lease finishes its mail and leaves the rest to the other', async () => {
    const { run, record, recipients, sent, isDone, coordination, clock, logged } = await withServer();
    await record(DISABLED);
    const sending = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    run({
      holder: 'one',
      send: (send) => async (mail) => {
        sending.resolve();
        await go.promise;
        return send(mail);
      },
    });
    await sending.promise;
    clock.advance(LEASE_MS);
    await coordination.acquire(NOTICES, 'two', LEASE_MS);
    await logged('notices lost its lease');
    go.resolve();
    await vi.waitUntil(async () => (await sent()).length === 1, WAIT);
    await coordination.release(NOTICES, 'two');
    await vi.waitUntil(isDone, WAIT);
    expect([recipients(), await sent()]).toEqual([[CONTACTS, [OPERATOR]], BOTH]);
  });

  test('one that does not know that it has lost its lease moves no checkpoint back', async () => {
    const { run, record, checkpoint, isDone } = await withServer();
    run({ holder: 'one', coordination: (whole) => ({ ...whole, acquire: async () => true }) });
    run({ holder: 'two', coordination: (whole) => ({ ...whole, acquire: async () => true }) });
    for (let n = 0; n < 5; n++) await record(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
    await vi.waitUntil(isDone, WAIT);
    const before = (await checkpoint())?.position ?? 0;
    await sleep(1_200);
    expect((await checkpoint())?.position).toBeGreaterThanOrEqual(before);
  });
});

describe('while a store is unavailable', () => {
  test.each(['acquire', 'checkpoint', 'send', 'append', 'moveCheckpoint'])(
    '%s fails, and nothing is mailed twice when it is available again',
    async (failing) => {
      const { run, record, recipients, sent, isDone, logged, clock } = await withServer();
      await record(DISABLED);
      let failures = 0;
      run(
        stepping(
          (step) => {
            if (step === failing && failures++ < 3) throw unavailable();
          },
          ['acquire', 'checkpoint', 'moveCheckpoint'],
        ),
      );
      await logged('notices waits: a store is unavailable');
      await logged('notices continues: the store is available again');
      clock.advance(1_000);
      await vi.waitUntil(isDone, WAIT);
      expect([recipients(), await sent()]).toEqual([[CONTACTS, [OPERATOR]], BOTH]);
    },
  );
});

describe('the checkpoint of the notices', () => {
  test('may be lost: every event is read again, and nothing is mailed twice', async () => {
    const { smtp, run, record, isDone, forgetCheckpoint } = await withServer();
    const first = run();
    await record(DISABLED);
    await vi.waitUntil(isDone, WAIT);
    await first.stop();
    forgetCheckpoint();
    run();
    await record(onKey('WebhookEnabled'));
    await smtp.received(4);
    await vi.waitUntil(isDone, WAIT);
    expect(smtp.mails.filter(({ raw }) => raw.includes('Webhook was switched off:'))).toHaveLength(2);
  });

  test('of another log is not used, and is replaced', async () => {
    const { smtp, run, record, isDone, logged, replaceLog, checkpoint } = await withServer();
    const first = run();
    for (let n = 0; n < 20; n++) await record(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
    await vi.waitUntil(isDone, WAIT);
    const { storeId } = (await checkpoint()) ?? {};
    await first.stop();
    await replaceLog();
    await record(DISABLED);
    run();
    await logged('every account event is read again');
    await smtp.received(2);
    await vi.waitUntil(async () => (await checkpoint())?.storeId !== storeId, WAIT);
    expect(await isDone()).toBe(true);
  });

  test('is read from its anchor on: an older copy of the log may have grown past its position', async () => {
    const { smtp, run, record, isDone, coordination, checkpoint } = await withServer();
    const first = run();
    await vi.waitUntil(isDone, WAIT);
    await first.stop();
    const { position, ...rest } = (await checkpoint()) ?? expect.fail('no checkpoint');
    await record(DISABLED);
    await coordination.moveCheckpoint(NOTICES, { position: position + 1, ...rest });
    run();
    await smtp.received(2);
  });

  test('follows the log also where only other events come, at most once a second', async () => {
    const { run, store, checkpoint, isDone } = await withServer();
    const steadyMs = world.steadyMs;
    let aheadMs = 0;
    // It is ten times as slow as the real one, so that a busy machine takes less than a second of it.
    const spy = vi.spyOn(world, 'steadyMs').mockImplementation(() => steadyMs() / 10 + aheadMs);
    onTestFinished(() => spy.mockRestore());
    run();
    await vi.waitUntil(isDone, WAIT);
    const before = await checkpoint();
    await record(store, 'transaction-1', 'a');
    await sleep(100);
    expect(await checkpoint()).toEqual(before);
    aheadMs = 1_000;
    const head = await store.head();
    await vi.waitUntil(async () => (await checkpoint())?.position === head, WAIT);
    expect((await checkpoint())?.anchor).toEqual(before?.anchor);
  });
});
