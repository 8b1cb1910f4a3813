import { expect, onTestFinished, test } from 'vitest';
import type { Log } from '../../../src/base/log.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { type RecordedEvent, Unreadable } from '../../../src/event-store/recorded-event.ts';
import { verifyLastDays } from '../../../src/operator/verify/verify-last-days.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import { projectEvent } from '../../../src/records/project-event.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { AFTER_URL, DAY_MS } from '../../support/agreement/verifying.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';
import { showing } from '../../support/transactions/records.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

/** Transactions 1 and 2, recorded three days ago, 3 and 4 yesterday; 2 was voided today. Nothing was projected yet. */
async function start() {
  const { store, clock, folder, append, account, author, openQueue } = openPushStores();
  const view = viewInFolder(folder, clock);
  onTestFinished(() => view.close());
  const queue = openQueue();
  await claimDeliveryLog(store, queue, clock);
  await account(opened(), keyIssued(), webhookSet());
  const confirm = (id: number) => append(`transaction-${id}`, confirmed(id, AFTER_URL));
  await confirm(1);
  await confirm(2);
  clock.advance(2 * DAY_MS);
  await confirm(3);
  await confirm(4);
  clock.advance(DAY_MS);
  await append('transaction-2', voided(2));
  const { generation } = await view.reset('store', 0);
  const project = async (...ids: number[]) => {
    const streams = await store.readStreams(ids.map((id) => `transaction-${id}`));
    await view.apply(streams.flat().map(projectEvent), { generation, position: await store.head() });
  };
  const lines: string[] = [];
  const log = {
    info: (_: unknown, message: string) => void lines.push(`info ${message}`),
    error: (_: unknown, message: string) => void lines.push(`error ${message}`),
  } as unknown as Log;
  const verify = (overrides: object = {}) =>
    verifyLastDays({
      store,
      view: () => view,
      clock,
      author,
      log,
      accountIds: [7],
      environment: 'staging',
      queue: () => queue,
      retentionMs: 90 * DAY_MS,
      signal: new AbortController().signal,
      settleMs: 0,
      ...overrides,
    });
  return { store, view, queue, clock, project, verify, lines, openQueue };
}

test('the last two days are repaired, older days are left alone, and an operator is told', async () => {
  const { store, view, queue, project, verify, lines } = await start();
  await project(1, 2, 4);
  await view.replace(1, []);
  await view.replace(2, [projectEvent((await store.readStream('transaction-2'))[0] as never)]); // its void was lost
  await view.replace(99, [showing({ id: 99, createdAtMs: Date.parse('2026-09-06T00:00:00Z') })]);
  expect(await verify()).toEqual({ view: 3, deliveries: 2, damage: [] });
  expect(await rowIn(view, 1)).toBeUndefined();
  expect([await rowIn(view, 2), await rowIn(view, 3), await rowIn(view, 99)]).toEqual([
    'hidden',
    expect.objectContaining({ id: 3 }),
    undefined,
  ]);
  expect((await listed(queue)).map(({ transactionId }) => transactionId).sort()).toEqual([3, 4]);
  expect(lines).toEqual([expect.stringMatching(/^error the last two days differed/)]);
  const repairs = (await store.readStream('operations')).filter(({ type }) => type === 'AgreementRepaired');
  expect(repairs.map(({ data }) => data)).toEqual([
    { what: 'view', repaired: 3 },
    { what: 'deliveries', repaired: 2 },
  ]);
  expect(await verify()).toEqual({ view: 0, deliveries: 0, damage: [] });
  expect(lines.slice(1)).toEqual([expect.stringMatching(/^info verified the last two days/)]);
  const ended = (await store.readStream('operations')).filter(({ type }) => type === 'AgreementVerified');
  expect(ended.map(({ data }) => data)).toEqual(Array(2).fill({ transactions: expect.any(Number), left: 0 }));
});

test('a delivery log that was lost is reported and never rebuilt', async () => {
  const { store, project, verify, lines, openQueue } = await start();
  await project(1, 2, 3, 4);
  const other = openQueue('other.db');
  expect(await verify({ queue: () => other })).toEqual({ view: 0, deliveries: 0, damage: [] });
  expect(await listed(other)).toEqual([]);
  expect(lines[0]).toMatch(/^error the delivery log is not the one that was started/);
  const types = (await store.readStream('operations')).map(({ type }) => type);
  expect(types).not.toContain('AgreementVerified'); // the deliveries were not judged
});

test('a transaction that a fast clock dated into the two days is judged', async () => {
  const { store, clock, project, verify, view } = await start();
  await project(1, 2, 3, 4);
  const ahead = newEvent(
    confirmed(5, AFTER_URL) as never,
    { actor: 'test', command: 'test' },
    clock.now() + 30 * 60_000,
  );
  await store.append([{ stream: 'transaction-5', expected: 'none', events: [ahead] }]);
  await project(); // the view is as far, and does not show it
  clock.advance(2 * DAY_MS + 20 * 60_000);
  await verify();
  expect(await rowIn(view, 5)).toMatchObject({ id: 5 });
});

test('a surplus does not count as repaired, and without a repair no event says so', async () => {
  const { store, queue, project, verify, lines } = await start();
  await project(1, 2, 3, 4);
  await verify();
  await queue.enqueue([
    newDelivery(0, { transactionId: 3, accountId: 7, occurredAtMs: Date.parse('2026-09-08') }),
  ]);
  expect(await verify()).toEqual({ view: 0, deliveries: 0, damage: [] });
  expect(lines.at(-1)).toBe(
    'error the last two days differ from the events, and not all could be repaired: see "Verifying" in docs/operations/watching.md',
  );
  const repairs = (await store.readStream('operations')).filter(({ type }) => type === 'AgreementRepaired');
  expect(repairs.map(({ data }) => data)).toEqual([{ what: 'deliveries', repaired: 2 }]);
});

test('nothing that depends on a damaged event is repaired, and the damage is logged', async () => {
  const { store, queue, project, verify, view, lines } = await start();
  await project(1, 2);
  const data = new Unreadable('its bytes are damaged', { isDamage: true });
  const garbled = (events: readonly RecordedEvent[]) =>
    events.map((event) => (event.stream === 'transaction-3' ? { ...event, data } : event));
  const damaged = replacing(store, {
    readStreams: async (streams) => (await store.readStreams(streams)).map(garbled),
    async *subscribe(options) {
      for await (const batch of store.subscribe(options)) yield { ...batch, events: garbled(batch.events) };
    },
  });
  expect(await verify({ store: damaged })).toMatchObject({
    view: 1,
    deliveries: 1,
    damage: [{ event: { stream: 'transaction-3', revision: 0 }, reason: data.reason, isCertain: true }],
  });
  expect([await rowIn(view, 3), await rowIn(view, 4)]).toMatchObject([undefined, { id: 4 }]);
  expect((await listed(queue)).map(({ transactionId }) => transactionId)).toEqual([4]);
  expect(lines).toMatchObject([
    expect.stringMatching(/^error damaged: event 0 of transaction-3 .*restore events.db from a backup/),
    expect.stringMatching(/^error the last two days differ/),
  ]);
});

test('a row of an event that cannot be read any more is logged, also if that may not be damage', async () => {
  const { store, project, verify, lines } = await start();
  await project(1, 2, 3, 4);
  const readable = (await store.readStream('transaction-3'))[0];
  const unread = (events: readonly RecordedEvent[]) =>
    events.map((event) =>
      event.id === readable?.id ? { ...event, data: new Unreadable('no JSON') } : event,
    );
  const spoiled = replacing(store, {
    readStreams: async (streams) => (await store.readStreams(streams)).map(unread),
    async *subscribe(options) {
      for await (const batch of store.subscribe(options)) yield { ...batch, events: unread(batch.events) };
    },
  });
  await verify(); // nothing else is left
  const { damage } = await verify({ store: spoiled });
  expect(damage).toMatchObject([{ event: { stream: 'transaction-3', revision: 0 }, isCertain: false }]);
  expect(lines.at(-1)).toMatch(/^error the last two days differ/);
});

test('the beginning of the days is found step by step, despite damaged times, and that can be interrupted', async () => {
  const { store, project, verify, view } = await start();
  await project(1, 2);
  let steps = 0;
  let stopAt = Infinity;
  const stopping = new AbortController();
  const small = replacing(store, {
    async readBackwards(options) {
      if (++steps === stopAt) stopping.abort(new Error('stopped'));
      const batch = await store.readBackwards({ ...options, limit: 1 });
      const events = batch.events.map((event) =>
        event.stream === 'transaction-4'
          ? { ...event, data: new Unreadable('garbled', { isDamage: true }), recordedAtMs: 0 }
          : event,
      );
      return { ...batch, events };
    },
  });
  stopAt = 2;
  await expect(verify({ store: small, signal: stopping.signal })).rejects.toThrow('stopped');
  expect(steps).toBe(2);
  stopAt = Infinity;
  await verify({ store: small });
  expect(await rowIn(view, 3)).toMatchObject({ id: 3 });
});

test('it stops when it is asked to', async () => {
  const { verify, project } = await start();
  await project(1, 2, 3, 4);
  await expect(verify({ signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped');
});
