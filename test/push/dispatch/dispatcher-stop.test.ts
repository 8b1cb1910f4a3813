import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { keyIssued, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { answered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { countByState, listed } from '../../support/deliveries/listed.ts';
import { queueInMemory } from '../../support/deliveries/open-queue.ts';
import { PushMachine, READY } from '../../support/deliveries/push.ts';
import { CommitGate, deliveryOf, id, pushMachine } from '../../support/deliveries/push-machine.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { interposed } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

/** Stops the dispatcher; says whether it has stopped. */
function stopping(m: PushMachine): { readonly stopped: () => boolean; readonly end: Promise<void> } {
  let stopped = false;
  const end = m.dispatcher.stop().then(() => {
    stopped = true;
  });
  return { stopped: () => stopped, end };
}

const waiting = (transactionId: number) => newDelivery(transactionId, { prefix: PREFIX, position: 1 });

describe('a dispatcher that stops waits', () => {
  const begin: Readonly<Record<string, (m: PushMachine) => Promise<unknown>>> = {
    enqueue: async (m) => void m.dispatcher.accept([waiting(1)]),
    lease: (m) => m.queue.enqueue([waiting(1)]),
    report: async (m) => void m.dispatcher.accept([waiting(1)]),
    async change(m) {
      await m.record('account-7', onKey('KeySwitchedOff'));
      await m.rows.follow();
      await m.queue.enqueue([waiting(1)]);
    },
  };

  test.each(Object.entries(begin))('for the commit "%s" that is under way', async (name, act) => {
    const gate = new CommitGate();
    const m = await pushMachine({ onCommit: gate.onCommit });
    gate.close(name);
    await act(m);
    await m.clock.advance(50);
    expect(gate.waiting).toBe(1);
    const { stopped, end } = stopping(m);
    await m.clock.advance(SECOND_MS);
    expect(stopped()).toBe(false);
    gate.open();
    await m.clock.advance(SECOND_MS);
    await end;
  });

  test('for a switch-off that is being recorded', async () => {
    const m = await pushMachine();
    m.sender.answer = () => ({ outcome: answered(503), afterMs: 1 });
    await m.dispatcher.accept(Array.from({ length: 49 }, (_, index) => waiting(index + 1)));
    await m.clock.advance(300 * SECOND_MS);
    const append = m.store.append.bind(m.store);
    const mayAppend = Promise.withResolvers<void>();
    m.store.append = async (appends) => {
      await mayAppend.promise;
      return append(appends);
    };
    await m.dispatcher.accept([waiting(50)]);
    await m.clock.advance(300 * SECOND_MS);
    const { stopped, end } = stopping(m);
    await m.clock.advance(SECOND_MS);
    expect(stopped()).toBe(false);
    mayAppend.resolve();
    await end;
    expect((await m.store.readStream('account-7')).at(-1)?.type).toBe('WebhookDisabled');
  });
});

describe('what a dispatcher had claimed when it stopped is due at once for another process', () => {
  const dueAtOnce = async (m: PushMachine) => {
    const [delivery] = await listed(m.queue);
    expect(delivery).toMatchObject({ state: 'pending', attemptsInCycle: 0 });
    expect(delivery?.dueAtMs).toBeLessThanOrEqual(m.clock.now());
    expect(m.sender.sent).toEqual([]);
  };

  test.each(['enqueue', 'lease'])('where the commit "%s" was under way', async (name) => {
    const gate = new CommitGate();
    const m = await pushMachine({ onCommit: gate.onCommit });
    gate.close(name);
    if (name === 'lease') await m.queue.enqueue([waiting(1)]);
    else void m.dispatcher.accept([waiting(1)]);
    await settle();
    const { end } = stopping(m);
    gate.open();
    await m.clock.advance(10);
    await end;
    await dueAtOnce(m);
  });

  test('where it came after the stop', async () => {
    const m = await pushMachine();
    await m.dispatcher.stop();
    await m.dispatcher.accept([waiting(1)]);
    await dueAtOnce(m);
  });
});

test('a dispatcher that stops leases nothing more, however much is due', async () => {
  const gate = new CommitGate();
  let claims = 0;
  const lanes = Array.from({ length: 60 }, (_, index) => `lane${String(index).padStart(6, '0')}`);
  const m = await pushMachine({
    events: lanes.flatMap((prefix) => [keyIssued({ prefix }), webhookSet({ prefix })]),
    onCommit: (name, args, commit) => {
      if (name === 'lease') claims += 1;
      return gate.onCommit(name, args, commit);
    },
  });
  gate.close('lease');
  claims = 0;
  await m.queue.enqueue(lanes.map((prefix, index) => newDelivery(index, { prefix, position: 1 })));
  await m.queue.enqueue(lanes.map((prefix, index) => newDelivery(100 + index, { prefix, position: 1 })));
  await settle();
  const { end } = stopping(m);
  gate.open();
  await m.clock.advance(10);
  await end;
  expect(claims).toBe(1);
  expect(await countByState(m.queue)).toMatchObject({ pending: 120 });
  expect(m.sender.sent).toEqual([]);
});

test('a stopped dispatcher keeps no timer and listens to no queue', async () => {
  const m = await pushMachine();
  const removed = vi.spyOn(m.queue.changed, 'remove');
  await m.push(501);
  await m.clock.advance(100);
  expect(m.clock.pending).toHaveLength(1);
  await m.dispatcher.stop();
  expect(m.clock.pending).toEqual([]);
  expect(removed).toHaveBeenCalledTimes(1);
  await m.queue.enqueue([waiting(502)]);
  await m.clock.advance(HOUR_MS);
  expect(m.sender.sent).toHaveLength(1);
});

describe('a dispatcher that starts', () => {
  test('leases nothing before it is started: the rows of accounts may not be up to date', async () => {
    const m = await pushMachine();
    m.kill();
    m.prepare();
    await m.dispatcher.accept([waiting(1)]);
    await settle();
    expect(m.sender.sent).toEqual([]);
    m.dispatcher.start();
    await m.clock.advance(10);
    expect(m.sender.sent).toHaveLength(1);
  });

  test('leaves alone what became due after its key was switched off and on again', async () => {
    const m = await pushMachine({ events: [onKey('KeySwitchedOff'), onKey('KeySwitchedOn')] });
    m.sender.answer = () => ({ outcome: answered(503), afterMs: 1 });
    await m.push(501);
    await m.clock.advance(15);
    m.kill();
    m.start();
    await m.clock.advance(31 * SECOND_MS);
    expect(m.sender.sent.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test('ends at once what is held for a webhook that was removed while no process ran', async () => {
    const m = await pushMachine({ events: [{ type: 'IntegrationDisabled', data: { account_id: 7 } }] });
    await m.push(501);
    await m.clock.advance(10);
    expect(m.sender.sent).toEqual([]);
    m.kill();
    await m.account(onKey('WebhookRemoved'));
    m.start();
    await m.clock.advance(10);
    expect(await deliveryOf(m, 501)).toMatchObject({ state: 'failed', reason: 'the webhook was removed' });
  });

  test('forgets the failures from before an enable that happened while no process ran, and starts slowly', async () => {
    const m = await pushMachine();
    m.sender.answer = () => ({ outcome: answered(503), afterMs: 1 });
    await m.push(1, 2, 3);
    await m.clock.advance(300 * SECOND_MS);
    expect((await m.queue.health(PREFIX)).failedInARow).toBe(3);
    await m.account(onKey('WebhookDisabled'));
    await m.clock.advance(SECOND_MS);
    m.kill();
    await m.account(onKey('WebhookEnabled'));
    m.start();
    await settle();
    expect((await m.queue.health(PREFIX)).failedInARow).toBe(0);
    m.sender.sent.length = 0;
    await m.push(...Array.from({ length: 8 }, (_, index) => 101 + index));
    await m.clock.advance(99);
    expect(m.sender.sent.map(({ id: sent }) => sent)).toEqual([id(101)]);
  });
});

test('a dispatcher that stops at any step of its start leaves no timer: its thread would not end before that', async () => {
  const stopAt = async (step: number): Promise<boolean> => {
    let left = Infinity;
    let end: Promise<void> | undefined;
    const atStep = (): void => {
      if (--left === 0) end = m.dispatcher.stop();
    };
    const calls = ['heads', 'lease', 'change', 'report'] as const;
    const m = new PushMachine(temporaryFolder(), (clock) =>
      interposed(queueInMemory(new MemoryStores(), clock), calls, atStep),
    );
    onTestFinished(() => m.close());
    await m.account(...READY, onKey('KeySwitchedOff'), {
      type: 'IntegrationDisabled',
      data: { account_id: 7 },
    });
    await m.queue.enqueue([waiting(1)]);
    left = step;
    m.start();
    await settle();
    if (end === undefined) return false;
    await end;
    expect([step, m.clock.pending]).toEqual([step, []]);
    return true;
  };
  let steps = 0;
  while (await stopAt(steps + 1)) steps += 1;
  expect(steps).toBeGreaterThan(1);
});
