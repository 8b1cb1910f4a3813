import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { keyIssued, onKey, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { areCollected } from '../../support/collected.ts';
import { newDelivery, SUCCESS, TIMEOUT } from '../../support/deliveries/deliveries.ts';
import { type PushMachine, sentIn } from '../../support/deliveries/push.ts';
import { id, pushMachine } from '../../support/deliveries/push-machine.ts';

const SECOND_MS = 1_000;

const access = (type: 'IntegrationEnabled' | 'IntegrationDisabled') =>
  ({ type, data: { account_id: 7 } }) as const;
const stateOf = async (m: PushMachine, transactionId: number) => {
  const found = await m.queue.find(id(transactionId));
  return found && { state: found.state, reason: found.reason, attempts: found.attempts.length };
};

test('a delivery is attempted as soon as it is stored, and recorded as delivered', async () => {
  const m = await pushMachine();
  await m.push(501);
  expect(m.sender.sent).toMatchObject([{ id: id(501), url: 'https://example.com/hook', attempt: 1 }]);
  await m.clock.advance(20);
  expect(await stateOf(m, 501)).toEqual({ state: 'delivered', reason: null, attempts: 1 });
});

test('while nothing is due, there is no timer but one without an end', async () => {
  const m = await pushMachine();
  await m.push(501);
  await m.clock.advance(100);
  expect(m.clock.pending).toHaveLength(1);
  expect(m.clock.pending[0]).toBeGreaterThan(50 * SECOND_MS);
});

test('a failed attempt is repeated in time where the clock is set back meanwhile', async () => {
  const m = await pushMachine();
  m.sender.answer = () => ({ outcome: TIMEOUT, afterMs: 500 });
  await m.push(501);
  await m.clock.advance(SECOND_MS);
  m.clock.step(-3_600 * SECOND_MS);
  await m.clock.advance(29 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
  await m.clock.advance(SECOND_MS);
  expect(m.sender.sent).toHaveLength(2);
});

test('what a process had claimed that died while its clock was ahead is attempted as soon as a lease is over', async () => {
  const m = await pushMachine();
  m.clock.step(3_600 * SECOND_MS);
  m.sender.answer = () => ({ outcome: TIMEOUT, afterMs: 500 });
  await m.push(501);
  m.kill();
  m.clock.step(-3_600 * SECOND_MS);
  m.start();
  await m.clock.advance(4_999);
  expect(m.sender.sent).toHaveLength(1);
  await m.clock.advance(1);
  expect(m.sender.sent).toHaveLength(2);
});

test('an attempt that is under way when the clock is set back is not made a second time', async () => {
  const m = await pushMachine();
  m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 400 });
  await m.push(501);
  m.clock.step(-3_600 * SECOND_MS);
  await m.push(502, 503);
  await m.clock.advance(10 * SECOND_MS);
  expect(m.sender.sent.filter(({ id: sent }) => sent === id(501))).toHaveLength(1);
  expect(await stateOf(m, 501)).toEqual({ state: 'delivered', reason: null, attempts: 1 });
});

test('what was recorded before a key was switched off is not attempted, though it is fanned out when it is on again', async () => {
  const m = await pushMachine();
  const recorded = await m.confirm(501);
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
  await m.fan(recorded);
  await m.clock.advance(100);
  expect(m.sender.sent).toEqual([]);
  const ended = { state: 'failed', reason: 'the key was switched off', attempts: 0 };
  expect(await stateOf(m, 501)).toEqual(ended);
});

test('what is fanned out after its key was off and on again ends, also while the account has no access', async () => {
  const m = await pushMachine();
  const late = await m.confirm(501);
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'), access('IntegrationDisabled'));
  const since = await m.confirm(502);
  await m.clock.advance(SECOND_MS);
  await m.fan(late);
  await m.fan(since);
  await m.clock.advance(SECOND_MS);
  expect(await stateOf(m, 501)).toMatchObject({ state: 'failed', reason: 'the key was switched off' });
  expect((await stateOf(m, 502))?.state).toBe('pending');
});

test('what waits for access when a key is switched off ends too, and what was redelivered since does not', async () => {
  const m = await pushMachine();
  await m.push(501);
  await m.clock.advance(100);
  await m.account(access('IntegrationDisabled'));
  await m.push(502);
  await m.clock.advance(100);
  m.kill();
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
  await m.queue.redeliver(
    { transactionId: 501, prefix: PREFIX },
    { force: true, dueAtMs: m.clock.now() + 60 * SECOND_MS },
  );
  m.start();
  await m.clock.advance(SECOND_MS);
  expect(await stateOf(m, 502)).toMatchObject({ state: 'failed', reason: 'the key was switched off' });
  expect((await stateOf(m, 501))?.state).toBe('pending');
});

test('a webhook that hangs with a backlog does not delay another by a millisecond', async () => {
  const other = 'bbbbbbbbbb';
  const m = await pushMachine({ events: [keyIssued({ prefix: other })] });
  m.sender.answer = ({ url }) =>
    url.endsWith('/hook') ? { outcome: TIMEOUT, afterMs: 500 } : { outcome: SUCCESS, afterMs: 5 };
  for (let transaction = 1; transaction <= 40; transaction++) await m.push(transaction);
  await m.account(
    webhookSet({ prefix: other, url: 'https://other.example/fine', set_at: '2026-09-03T08:00:00.000Z' }),
  );
  await m.clock.advance(2 * SECOND_MS);
  await m.push(100);
  await m.clock.advance(0);
  const fine = m.sender.sent.filter(({ url }) => url.endsWith('/fine'));
  expect(fine.map(({ atMs }) => atMs)).toEqual([m.clock.now()]);
  const hanging = m.sender.sent.filter(
    ({ url, atMs }) => url.endsWith('/hook') && atMs > m.clock.now() - 500,
  );
  expect(hanging.length).toBeLessThanOrEqual(4); // two in flight since it is known to fail, and their successors
});

test('a fault of the program fails the dispatcher under its own name, and nothing is leased any more', async () => {
  let [leases, isBroken] = [0, false];
  const m = await pushMachine({
    onCommit: (name, _args, commit) => {
      if (name !== 'lease' || !isBroken) return commit();
      leases += 1;
      return Promise.reject(new TypeError('not a function'));
    },
  });
  const working = Symbol('working');
  expect(await Promise.race([m.dispatcher.failed, nextTurn(working)])).toBe(working);
  isBroken = true;
  await m.queue.enqueue([newDelivery(1, { prefix: PREFIX, position: 1 })]);
  await m.clock.advance(60_000);
  await expect(m.dispatcher.failed).rejects.toThrow(new TypeError('not a function'));
  expect(leases).toBe(1);
});

test('an outcome that can be recorded in no form fails the dispatcher', async () => {
  const m = await pushMachine({
    onCommit: (name, _args, commit) =>
      name === 'report' ? Promise.reject(new TypeError('not a function')) : commit(),
  });
  await m.push(501);
  await m.clock.advance(15);
  await expect(m.dispatcher.failed).rejects.toThrow(new TypeError('not a function'));
});

test('nothing is kept of an attempt that has ended', async () => {
  const m = await pushMachine();
  const requests: WeakRef<object>[] = [];
  m.sender.send = async (request) => {
    requests.push(new WeakRef(request));
    return sentIn(1, SUCCESS);
  };
  await m.push(501, 502, 503);
  await m.clock.advance(10);
  expect(requests).toHaveLength(3);
  expect(await areCollected(requests)).toBe(true);
});

describe('the event loop', () => {
  /** A machine, and the turn of the event loop in which each commit of a name began. */
  async function countingTurns(name: string, events: readonly AccountEvent[] = []) {
    let turn = 0;
    let immediate: NodeJS.Immediate;
    const count = (): void => {
      turn += 1;
      immediate = setImmediate(count);
    };
    count();
    onTestFinished(() => clearImmediate(immediate));
    const turns: number[] = [];
    const m = await pushMachine({
      events,
      onCommit: (commit, _args, run) => {
        if (commit === name) turns.push(turn);
        return run();
      },
    });
    m.sender.answer = () => ({ outcome: SUCCESS, afterMs: 60_000 });
    return { m, turns };
  }

  const many = (count: number, prefix: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => newDelivery(n + 1, { prefix: prefix(n), position: 1 }));

  test('new deliveries are stored a hundred at a time, each in a turn of the event loop', async () => {
    const { m, turns } = await countingTurns('enqueue');
    await m.dispatcher.accept(many(250, () => PREFIX));
    expect(new Set(turns).size).toBe(3);
  });

  test('due deliveries are leased a hundred at a time, each in a turn of the event loop', async () => {
    const lane = (n: number) => `lane${String(n).padStart(6, '0')}`;
    const prefixes = Array.from({ length: 300 }, (_, n) => lane(n));
    const events = prefixes.flatMap((prefix) => [
      keyIssued({ prefix }),
      webhookSet({ prefix, url: `https://${prefix}.example.com/hook` }),
    ]);
    const { m, turns } = await countingTurns('lease', events);
    await m.queue.enqueue(many(300, lane));
    await m.clock.advance(0);
    expect(turns.length).toBeGreaterThan(2);
    expect(new Set(turns).size).toBe(turns.length);
  });
});
