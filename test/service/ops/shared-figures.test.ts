import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import type { SharedFigureParts } from '../../../src/service/ops/shared-figures.ts';
import {
  keyIssued,
  onKey,
  opened as opened7,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { noRows, rowsAfter } from '../../support/accounts/rows-after.ts';
import { claimFrom, claimOptions, delivered, newDelivery } from '../../support/deliveries/deliveries.ts';
import { replacing } from '../../support/interposed.ts';
import { memoryLog } from '../../support/service/api.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';
import { openProjection } from '../../support/transactions/projector.ts';
import { until } from '../../support/waiting.ts';

const { signal } = new AbortController();

const none = { parked: async () => [] };

function opened(overrides: Partial<SharedFigureParts> = {}) {
  const stores = openProjection();
  const metrics = createMetrics();
  const status = async () => ({ position: 0, parked: 400 });
  const queue = stores.openQueue();
  const parts = {
    ...stores,
    queue,
    accounts: noRows(stores.clock),
    environment: 'staging' as const,
    log: silentLog,
    isBackedUp: true,
    subscriptions: { ...none, status },
  };
  const figures = async (): Promise<Record<string, number>> => {
    await metrics.shared.read({ ...parts, ...overrides }, signal);
    const lines = (await metrics.registry.metrics()).split('\n');
    const shared = lines.filter((line) =>
      /^fuel_(follower|view_position|event_store|deliveries_(?!in)|webhooks|accounts|last)/.test(line),
    );
    return Object.fromEntries(
      shared.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
    );
  };
  return { ...stores, queue, figures, parts: { ...parts, ...overrides }, readings: metrics.shared.readings };
}

describe('the figures that are the same in every process', () => {
  test('are how old the first event is that a follower has not done, and how many it parked', async () => {
    const { append, clock, figures } = opened();
    await append('transaction-1', confirmed(1));
    await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
    clock.advance(1_500);
    await append('transaction-2', confirmed(2));
    clock.advance(1_000);
    expect(await figures()).toMatchObject({
      'fuel_follower_lag_seconds{follower="transactions"}': 2.5,
      'fuel_follower_lag_seconds{follower="deliveries"}': 2.5,
      'fuel_follower_lag_seconds{follower="notices"}': 2.5,
      'fuel_follower_parked_events{follower="transactions"}': 0,
      'fuel_follower_parked_events{follower="deliveries"}': 400,
      fuel_event_store_position: 3,
      fuel_view_position: 0,
    });
  });

  test('have no lag where only events of others follow', async () => {
    const { append, clock, store, figures } = opened({
      subscriptions: {
        ...none,
        status: async (name) => ({ position: name === 'deliveries' ? 1 : 0, parked: 0 }),
      },
    });
    await append('transaction-1', confirmed(1));
    await append('account-7', { type: 'IntegrationEnabled', data: { account_id: 7 } });
    clock.advance(2_000);
    expect(await store.head()).toBe(2);
    expect(await figures()).toMatchObject({
      'fuel_follower_lag_seconds{follower="deliveries"}': 0,
      'fuel_follower_lag_seconds{follower="notices"}': 2,
    });
  });

  test('are the backlog, and for how long its oldest delivery has been due', async () => {
    const { queue, clock, figures } = opened();
    expect(await figures()).toMatchObject({ fuel_deliveries_oldest_due_seconds: 0 });
    const createdAtMs = clock.now();
    await queue.enqueue([newDelivery(1, { createdAtMs }), newDelivery(2, { createdAtMs })]);
    clock.advance(7_000);
    expect(await figures()).toMatchObject({
      fuel_deliveries_pending: 2,
      fuel_deliveries_held: 0,
      fuel_deliveries_oldest_due_seconds: 7,
      fuel_webhooks_failing: 0,
      fuel_webhooks_disabled: 0,
    });
  });

  test('are how long a webhook that may be sent to has had no attempt, whatever is sent to the others', async () => {
    const accounts = await rowsAfter(
      opened7(),
      { type: 'IntegrationEnabled', data: { account_id: 7 } },
      profileSet('2026-01-01T00:00:00Z', null),
      ...[
        keyIssued(),
        webhookSet(),
        keyIssued({ prefix: 'bbbbbbbbbb' }),
        webhookSet({ prefix: 'bbbbbbbbbb' }),
      ],
    );
    const { queue, clock, figures } = opened({ accounts });
    const stuck = async () => (await figures()).fuel_webhooks_stuck_seconds;
    const createdAtMs = clock.now();
    await queue.enqueue([newDelivery(1, { prefix: PREFIX, createdAtMs })]);
    await queue.enqueue([newDelivery(2, { prefix: 'bbbbbbbbbb', createdAtMs })]);
    clock.advance(400_000);
    expect(await stuck()).toBe(0); // the delivery may be the next one of a backlog
    clock.advance(15_000);
    const claimed = await claimFrom(
      queue,
      claimOptions(clock.now(), { laneCapacity: (lane) => (lane === PREFIX ? 0 : 1) }),
    );
    await queue.report(claimed.map((claim) => delivered(claim, clock.now())));
    expect(await stuck()).toBe(415);
  });

  test('are the webhooks that are switched off, and the accounts with an event that cannot be read', async () => {
    const readable = [opened7(), keyIssued(), webhookSet(), onKey('WebhookDisabled')];
    const before = opened({ accounts: await rowsAfter(...readable) });
    expect(await before.figures()).toMatchObject({ fuel_accounts_unreadable: 0, fuel_webhooks_disabled: 1 });
    const after = opened({ accounts: await rowsAfter(...readable, { type: 'Foo', data: {} }) });
    expect(await after.figures()).toMatchObject({
      fuel_accounts_unreadable: 1,
      fuel_webhooks_disabled: 0,
      'fuel_follower_parked_events{follower="accounts"}': 1,
    });
  });

  test('are no numbers while they cannot be read, and the others are', async () => {
    const status = (): Promise<never> => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const { figures } = opened({ subscriptions: { ...none, status } });
    expect(await figures()).toMatchObject({
      'fuel_follower_lag_seconds{follower="deliveries"}': Number.NaN,
      'fuel_follower_lag_seconds{follower="transactions"}': 0,
      'fuel_follower_lag_seconds{follower="notices"}': 0,
      fuel_deliveries_pending: 0,
    });
  });

  test('are read for a limited time, which is no fault, and an outage has its place in the history', async () => {
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
    onTestFinished(() => timeout.mockRestore());
    const lines: Record<string, unknown>[] = [];
    const hanging = opened({ log: memoryLog(lines) });
    await hanging.append('transaction-1', confirmed(1));
    const store = replacing(hanging.store, {
      subscribe({ signal: until }) {
        setImmediate(() => late.abort(new DOMException('late', 'TimeoutError')));
        return {
          [Symbol.asyncIterator]: () => ({
            next: () =>
              new Promise((_, reject) => until.addEventListener('abort', () => reject(until.reason))),
          }),
        } as never;
      },
    });
    const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const [backlog, dueLanes, askedToWaitUntil, pendingLanes, countIn] = Array.from(
      { length: 5 },
      () => away,
    );
    const queue = { backlog, dueLanes, askedToWaitUntil, pendingLanes, countIn } as never;
    const { figures, readings } = opened({ store, queue, log: memoryLog(lines) });
    expect(await figures()).toMatchObject({
      'fuel_follower_lag_seconds{follower="transactions"}': Number.NaN,
      fuel_deliveries_pending: Number.NaN,
    });
    expect(timeout).toHaveBeenCalledWith(10_000);
    expect([readings.at(-1)?.pending, lines]).toEqual([null, []]);
  });

  test('are when a backup and a proof were made last, from the begin of the store on', async () => {
    const { append, clock, figures } = opened();
    const times = async () => {
      const found = await figures();
      return [found.fuel_last_backup_timestamp_seconds, found.fuel_last_proof_timestamp_seconds];
    };
    expect(await times()).toEqual([Number.NaN, Number.NaN]);
    const begunAt = clock.now() / 1_000;
    await append('operations', { type: 'StoreNamed', data: { store_id: 'one' } });
    expect(await times()).toEqual([begunAt, begunAt]);
    clock.advance(5_000);
    await append('operations', { type: 'BackupMade', data: { events_up_to: 1 } });
    clock.advance(5_000);
    await append('operations', { type: 'AgreementVerified', data: { transactions: 0, left: 0 } });
    clock.advance(5_000);
    await append('operations', { type: 'AgreementVerified', data: { transactions: 3, left: 1 } }); // proves nothing
    for (let looks = 0; looks < 2; looks++) expect(await times()).toEqual([begunAt + 5, begunAt + 10]);
    const { figures: onEngines, append: another } = opened({ isBackedUp: false });
    await another('operations', { type: 'StoreNamed', data: { store_id: 'two' } });
    expect(await onEngines()).toMatchObject({ fuel_last_backup_timestamp_seconds: Number.NaN });
  });

  test('are no numbers either once they can be read no more', async () => {
    let isAway = false;
    const away = async <T>(value: T): Promise<T> => {
      if (isAway) throw new FuelError('STORE_UNAVAILABLE', 'away');
      return value;
    };
    const { figures } = opened({
      subscriptions: { ...none, status: () => away({ position: 0, parked: 400 }) },
      coordination: { checkpoint: () => away(undefined) },
      view: {
        checkpoint: () => away(undefined),
        countParked: () => away(2_000),
        ...none,
      },
      queue: {
        askedToWaitUntil: async () => undefined,
        pendingLanes: () => away([]),
        countIn: () => away({ pending: 0, waiting: 0 }),
        dueLanes: () => away({ lanes: [], isAll: true, next: undefined }),
        backlog: () => away({ pending: 1, underWay: 0, waiting: 0, failingLanes: 1, nextDueAtMs: undefined }),
      },
    });
    const before = await figures();
    const unknown = Object.keys(before).filter((name) => Number.isNaN(before[name]));
    expect(unknown).toEqual(['fuel_last_backup_timestamp_seconds', 'fuel_last_proof_timestamp_seconds']); // the store has no name
    expect(before).toMatchObject({
      'fuel_follower_parked_events{follower="transactions"}': 2_000,
      fuel_deliveries_pending: 1,
    });
    isAway = true;
    const known = Object.entries(await figures()).filter(([, value]) => !Number.isNaN(value));
    expect(known).toEqual([
      ['fuel_webhooks_disabled', 0],
      ['fuel_accounts_unreadable', 0],
      ['fuel_follower_lag_seconds{follower="accounts"}', 0],
      ['fuel_follower_position{follower="accounts"}', 0],
      ['fuel_follower_parked_events{follower="accounts"}', 0],
    ]);
  });

  test('are read also where one store does not answer', async () => {
    const never = new Promise<never>(() => undefined);
    const { parts } = opened();
    const shown = (away: Partial<SharedFigureParts>, line: string): Promise<void> => {
      const { shared, registry } = createMetrics();
      void shared.read({ ...parts, ...away }, signal);
      return until(async () => (await registry.metrics()).includes(line));
    };
    const away = { ...none, checkpoint: () => never, countParked: () => never };
    const subscriptions = { ...none, status: () => never };
    await shown({ view: away, subscriptions }, 'fuel_deliveries_pending 0');
    const all = ['backlog', 'dueLanes', 'askedToWaitUntil', 'pendingLanes', 'countIn'];
    const queue = Object.fromEntries(all.map((name) => [name, () => never])) as never;
    await shown({ queue }, 'fuel_follower_parked_events{follower="deliveries"} 400');
  });

  test('are read no longer when the process stops, also while a store does not answer', async () => {
    const { parts } = opened({ subscriptions: { ...none, status: () => new Promise(() => undefined) } });
    const stopping = new AbortController();
    const running = createMetrics().shared.run(parts, stopping.signal);
    await new Promise(setImmediate);
    stopping.abort();
    await expect(running).resolves.toBeUndefined();
  });

  test('are kept for the console, what could not be read as not known', async () => {
    const status = (): Promise<never> => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const { figures, readings, clock } = opened({ subscriptions: { ...none, status } });
    await figures();
    clock.advance(15_000);
    await figures();
    const reading = { lag: { accounts: 0, transactions: 0, notices: 0 }, pending: 0 };
    expect(readings).toEqual([
      { atMs: clock.now() - 15_000, ...reading },
      { atMs: clock.now(), ...reading },
    ]);
  });
});
