import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { TransactionEvent } from '../../../src/domain/transaction-events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { PushMachine } from '../../support/deliveries/push.ts';
import { id, pushMachine } from '../../support/deliveries/push-machine.ts';
import { confirmedData } from '../../support/transactions/records.ts';

const DAY_MS = 86_400_000;
const find = (m: PushMachine, transactionId: number) => m.queue.find(id(transactionId));

describe('the time at which an event was recorded is that of its metadata, which a copy keeps', () => {
  /** A confirmed transaction that the store takes now, with a metadata time so long ago. */
  async function copied(m: PushMachine, transactionId: number, agoMs: number) {
    const created_at = new Date(m.clock.now()).toISOString();
    const data = confirmedData({ transaction_id: transactionId, created_at });
    const event = { type: 'TransactionConfirmed', data } as unknown as TransactionEvent;
    const recordedMs = m.clock.now() - agoMs;
    const copy = newEvent(event, { actor: 'test', command: 'test' }, recordedMs);
    await m.store.append([{ stream: `transaction-${transactionId}`, expected: 'any', events: [copy] }]);
    await m.follow();
    const [recorded] = await m.store.readStream(`transaction-${transactionId}`);
    if (recorded === undefined) throw new Error('not recorded');
    expect(recorded.recordedAtMs).toBe(m.clock.now());
    return { recorded, recordedMs };
  }

  test('in the delivery that is stored', async () => {
    const m = await pushMachine();
    const { recorded, recordedMs } = await copied(m, 501, 3 * DAY_MS);
    await m.fan(recorded);
    expect(await find(m, 501)).toMatchObject({ occurredAtMs: recordedMs, createdAtMs: m.clock.now() });
  });

  test('for the retention, beyond which nothing is created', async () => {
    const m = await pushMachine();
    const edge = await copied(m, 501, 90 * DAY_MS);
    const beyond = await copied(m, 502, 90 * DAY_MS + 1);
    expect(await m.fan(edge.recorded, beyond.recorded)).toMatchObject([{ kind: 'ack' }, { kind: 'ack' }]);
    expect(await find(m, 501)).toBeDefined();
    expect(await find(m, 502)).toBeUndefined();
  });

  test('for the retention also where the account cannot be read: what is too old waits for nothing', async () => {
    const m = await pushMachine();
    await m.record('account-7', { type: 'AccountFrozen', data: { account_id: 7 } } as never);
    const edge = await copied(m, 501, 90 * DAY_MS);
    const beyond = await copied(m, 502, 90 * DAY_MS + 1);
    const settled = await m.fan(edge.recorded, beyond.recorded);
    expect(settled.map(({ kind, event }) => [event.event.stream, kind])).toEqual([
      ['transaction-502', 'ack'],
      ['transaction-501', 'retry'],
    ]);
  });
});

test('deliveries of an account that cannot be read wait for a second, then twice as long each time, a minute at most, and others continue', async () => {
  const m = await pushMachine();
  await m.record('account-9', { type: 'IntegrationEnabled', data: { account_id: 9 } });
  const event = await m.confirm(501, { account_id: 9 });
  const delays: unknown[] = [];
  for (const retryCount of [0, 1, 5, 6, 10, 2_000]) {
    const [result] = await m.fanOut.handle([{ event, retryCount }]);
    delays.push(result?.kind === 'retry' ? result.delayMs : result?.kind);
  }
  expect(delays).toEqual([1_000, 2_000, 32_000, 60_000, 60_000, 60_000]);
  expect(await m.fan(event, await m.confirm(502))).toMatchObject([
    { kind: 'retry', reason: 'IntegrationEnabled before the account was opened' },
    { kind: 'ack' },
  ]);
  expect(await find(m, 502)).toBeDefined();
});

test('withdrawals are stored before deliveries, and these are accepted together', async () => {
  const m = await pushMachine();
  const first = await m.confirm(501);
  const second = await m.confirm(502);
  const third = await m.confirm(503);
  const voided = await m.void(501);
  const steps: unknown[] = [];
  let turns = 3; // each takes less time than the one before
  const step = async (...what: readonly unknown[]): Promise<void> => {
    for (let left = turns--; left > 0; left--) await nextTurn();
    steps.push(what);
  };
  const fanOut = m.fanOutTo(
    (all) =>
      step(
        'accept',
        all.map(({ transactionId }) => transactionId),
      ),
    {
      change: async (change) => {
        await step('withdraw', change.kind === 'withdraw' ? change.transactionIds : change);
        return 1;
      },
    },
  );
  const results = await fanOut.handle(
    [second, third, first, voided].map((event) => ({ event, retryCount: 0 })),
  );
  expect(results.map(({ kind }) => kind)).toEqual(['ack', 'ack', 'ack', 'ack']);
  expect(steps).toEqual([
    ['withdraw', [501]],
    ['accept', [502, 503, 501]],
  ]);
});
