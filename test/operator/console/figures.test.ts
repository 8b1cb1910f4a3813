import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { RESTORE_EVENTS } from '../../../src/event-store/damage.ts';
import { failingWebhooks } from '../../../src/operator/checks/accounts.ts';
import { accountLists } from '../../../src/operator/console/figures/account-lists.ts';
import { known, shared } from '../../../src/operator/console/figures/known.ts';
import { attentionOf, type Snapshot } from '../../../src/operator/console/figures/snapshot.ts';
import { render } from '../../../src/operator/console/html/html.ts';
import type { PageContext } from '../../../src/operator/console/html/layout.ts';
import { keyPage } from '../../../src/operator/console/pages/key.ts';
import { webhooksPage } from '../../../src/operator/console/pages/webhooks.ts';
import type { Table } from '../../../src/operator/print/document.ts';
import { keyIssued, opened, PREFIX, rateSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';
import { answered, claimOptions, newDelivery, retryAt } from '../../support/deliveries/deliveries.ts';
import { queueInMemory } from '../../support/deliveries/open-queue.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const NOW_MS = Date.parse('2026-09-10T00:00:00.000Z');
const DAY_MS = 86_400_000;
const disabled: AccountEvent = {
  type: 'WebhookDisabled',
  data: {
    account_id: 7,
    prefix: PREFIX,
    reason: 'r',
    failed_in_a_row: 50,
    failing_since: null,
    last_answers: [],
  },
};
const withWebhook = [opened(), keyIssued(), webhookSet()] as const;

const repair = {
  ...{ stream: 'operations', revision: 5, at: '', type: 'AgreementRepaired' },
  ...{ actor: 'system', os_user: null, command: null, correlation_id: null },
};

function snapshotOf(overrides: Partial<Snapshot> = {}): Snapshot {
  const at = <T>(value: T) => ({ value, atMs: NOW_MS });
  return {
    atMs: NOW_MS,
    followers: at([
      { name: 'transactions' as const, position: 5, lag_seconds: 0, lag_events: 0, parked: 0, holder: 'one' },
    ]),
    backlog: at({ pending: 0, underWay: 0, waiting: 0, held: 0, failingLanes: 0, nextDueAtMs: undefined }),
    failing: at([]),
    processes: at([]),
    readiness: at({ ready: true, checks: { known_to_others: true } }),
    operations: at([]),
    certificateEndsAtMs: at(undefined),
    trustedAtMs: at(undefined),
    disk: at(undefined),
    lists: at({ accounts: [], unreadable: [], webhooks: [], disabled: [] }),
    damage: at([]),
    ...overrides,
  };
}

describe('what needs attention', () => {
  const of = (overrides: Partial<Snapshot>) =>
    attentionOf(snapshotOf(overrides), ['eventstoredb', 'mongodb']).map(
      ({ ok, detail, do: cure, words }) =>
        `${ok ? 'warn' : 'bad'}: ${detail}${cure === `fuel ${words.join(' ')}` ? '' : `: ${cure}`}`,
    );
  const at = <T>(value: T) => ({ value, atMs: NOW_MS });
  const follower = {
    name: 'transactions',
    position: 5,
    lag_seconds: 0,
    lag_events: 0,
    parked: 0,
    holder: 'one',
  } as const;

  test('comes with what does not end by itself first', () => {
    const parked = { ...follower, parked: 1, unfinished_rebuild_percent: 40 };
    const closed = { webhooks: [], disabled: [], unreadable: [7] };
    const found = of({ followers: at([parked]), lists: at(closed as never) });
    expect(found.map((text) => text.split(':')[0])).toEqual(['bad', 'bad', 'warn']);
  });

  test('is nothing where all is well', () => {
    expect(of({})).toEqual([]);
  });

  test('is the cause alone where a disk or an engine is, and else what follows from it', () => {
    const down = {
      readiness: at({ ready: false, checks: { known_to_others: false, event_store_heard: false } }),
      followers: at([{ ...follower, holder: null, lag_seconds: 61 }]),
      backlog: at({ pending: 1, underWay: 0, waiting: 0, held: 0, failingLanes: 0, nextDueAtMs: 0 }),
    };
    expect(of(down).length).toBe(5);
    const disk = {
      freeBytes: 0,
      text: '',
      isLow: true,
      refusal: 'the disk of /data is full: 4 KiB are left',
    };
    const [cause, ...more] = of({ ...down, disk: at(disk) });
    expect([cause, more]).toEqual([expect.stringContaining('bad: the disk of /data is full'), []]);
    const engine = at({ ready: false, checks: { ...down.readiness.value.checks, mongodb: false } });
    expect(of({ ...down, readiness: engine })).toEqual(['bad: mongodb can not be reached']);
    const low = at({ ...disk, refusal: undefined, text: '/data: 0.1 GB free, 1 %' });
    expect(of({ ...down, disk: low }).length).toBe(6);
    expect(of({ disk: low })).toEqual([expect.stringContaining('bad: /data: 0.1 GB free, 1 %')]);
  });

  test.each<[Partial<Snapshot>, string]>([
    [{ readiness: at({ ready: false, checks: { mongodb: false } }) }, 'bad: mongodb can not be reached'],
    [
      { readiness: at({ ready: false, checks: { not_stopping: false } }) },
      'bad: this process is not ready: not_stopping does not hold',
    ],
    [
      { followers: at([{ ...follower, unfinished_rebuild_percent: 12 }]) },
      'warn: a rebuild of transactions stopped at 12 %',
    ],
    [
      {
        backlog: at({
          pending: 1,
          underWay: 0,
          waiting: 0,
          held: 0,
          failingLanes: 0,
          nextDueAtMs: NOW_MS - 301_000,
        }),
      },
      'bad: deliveries wait: the first of them has been due since 2026-09-09T23:54:59.000Z',
    ],
    [
      {
        operations: at([{ ...repair, atMs: NOW_MS - DAY_MS, data: { what: 'view', repaired: 3 } }]),
      },
      'warn: 3 of view differed from the events and were repaired at 2026-09-09T00:00:00.000Z',
    ],
    [
      {
        damage: at([
          { position: 9, event: { stream: 'transaction-5', revision: 0 }, reason: 'gone', isCertain: true },
          { position: 0, event: undefined, reason: 'malformed', isCertain: true },
        ]),
      },
      `bad: damaged: event 0 of transaction-5 (position 9) can not be read: gone, and 1 more: ${RESTORE_EVENTS}`,
    ],
    [{ backlog: { unknown: 'away' } }, 'warn: not known: the backlog of deliveries (away)'],
  ])('is in %j: %s', (overrides, text) => {
    const found = of(overrides);
    expect([found.length, found[0]?.slice(0, text.length)]).toEqual([1, text]);
  });

  test('is no repair of long ago, no delivery that has just become due', () => {
    const repaired = { ...repair, atMs: NOW_MS - 3 * DAY_MS, data: {} };
    const backlog = {
      pending: 1,
      underWay: 0,
      waiting: 0,
      held: 1,
      failingLanes: 0,
      nextDueAtMs: NOW_MS - 299_000,
    };
    expect(of({ operations: at([repaired]), backlog: at(backlog) })).toEqual([]);
  });

  test('is a webhook that fails, unless it is switched off already', () => {
    const failing = { prefix: PREFIX, failedInARow: 4, failingSinceMs: NOW_MS, lastAnswers: ['503'] };
    expect(of({ failing: at([failing]) })).toEqual([
      `warn: deliveries to key ${PREFIX} fail: 4 in a row, the last answer 503`,
    ]);
    const ofAccount = (...events: readonly AccountEvent[]) =>
      failingWebhooks([failing], directoryOf(...events));
    expect(ofAccount(...withWebhook)).toEqual([failing]);
    expect(ofAccount(...withWebhook, disabled)).toEqual([]);
    expect(ofAccount()).toEqual([]);
  });
});

describe('the lists of accounts', () => {
  const listsOf = (directory: Directory) => accountLists({ directory, environment: 'staging' });
  const apply = (directory: Directory, accountId: number, ...events: readonly AccountEvent[]): void => {
    const stream = `account-${accountId}`;
    const first = (directory.account(accountId)?.revision ?? -1) + 1;
    for (const [at, event] of events.entries()) {
      const data = {
        ...event.data,
        account_id: accountId,
        ...('prefix' in event.data && { prefix: `key${accountId}`.padEnd(10, 'x') }),
      };
      const decoded = { ok: true, event: { ...event, data } as AccountEvent, atMs: accountId } as const;
      directory.apply({ position: directory.position + 1, stream, revision: first + at, decoded });
    }
  };

  test('are in the order of ids, with webhooks of active keys, and what is switched off, the latest first', async () => {
    const directory = new Directory();
    for (const id of [9, 7, 8, 11, 10]) apply(directory, id, opened('N'), keyIssued(), webhookSet());
    apply(directory, 8, disabled);
    apply(directory, 10, disabled);
    apply(directory, 9, { type: 'KeySwitchedOff', data: { account_id: 9, prefix: '' } });
    const lists = await listsOf(directory)();
    expect(lists.accounts.map(({ id }) => id)).toEqual([7, 8, 9, 10, 11]);
    expect(lists.webhooks.map(({ accountId }) => accountId)).toEqual([7, 8, 10, 11]);
    expect(lists.disabled.map(({ accountId }) => accountId)).toEqual([10, 8]);
  });

  test('are made again if accounts have changed, and only then', async () => {
    const directory = new Directory();
    apply(directory, 7, opened('N'));
    const read = listsOf(directory);
    const first = await read();
    directory.advance(500);
    expect(await read()).toBe(first);
    apply(directory, 8, opened('M'));
    expect((await read()).accounts).toHaveLength(2);
  });

  test('are forgotten once nobody has looked for a while', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const read = listsOf(new Directory());
    await read();
    vi.advanceTimersByTime(14 * 60_000);
    const lists = await read();
    vi.advanceTimersByTime(14 * 60_000);
    expect(await read()).toBe(lists);
    vi.advanceTimersByTime(15 * 60_000);
    expect(await read()).not.toBe(lists);
  });
});

test('accounts that changed are read again among those that did not', async () => {
  const directory = new Directory();
  const apply = (accountId: number, revision: number, event: AccountEvent): void => {
    const data = { ...event.data, account_id: accountId };
    const decoded = { ok: true, event: { ...event, data } as AccountEvent, atMs: 1 } as const;
    directory.apply({ position: directory.position + 1, stream: `account-${accountId}`, revision, decoded });
  };
  for (let id = 1; id <= 300; id++) apply(id, 0, opened(`Name ${id}`));
  const read = accountLists({ directory, environment: 'staging' });
  expect((await read()).accounts).toHaveLength(300);
  apply(7, 1, keyIssued());
  apply(7, 2, webhookSet());
  apply(301, 0, opened('Newest'));
  const { accounts, webhooks } = await read();
  expect([accounts.length, accounts[300]?.name, webhooks]).toMatchObject([301, 'NEWEST', [{ accountId: 7 }]]);
});

test('webhooks are listed as those switched off, those that fail and the others, each after the one before', async () => {
  const refs = (...names: readonly string[]) =>
    names.map((prefix) => ({ accountId: 7, prefix, disabledAtMs: null }));
  const others = Array.from({ length: 60 }, (_, n) => `other${n}`);
  const lists = { webhooks: refs('off', 'bad', 'both', ...others), disabled: refs('off', 'both') };
  const lanes = ['bad', 'both'].map((prefix) => ({ prefix, failedInARow: 1, lastAnswers: [] }));
  const figures = { lists: async () => ({ value: lists }), failing: async () => ({ value: lanes }) };
  const listed = async (query: PageContext['query']) => {
    const context = { parts: { directory: new Directory() }, figures, query } as unknown as PageContext;
    const page = await webhooksPage(context);
    const list = page.parts.find((part) => part !== null && 'rows' in part) as Table | undefined;
    return list?.rows.map(({ id }) => id.replace('webhooks-', ''));
  };
  expect(await listed({})).toEqual(['off', 'both', 'bad', ...others.slice(0, 47)]);
  expect(await listed({ after: 'other46' })).toEqual(others.slice(47));
  expect(await listed({ state: 'active', after: 'other49' })).toEqual(others.slice(50));
  expect(await listed({ state: 'failing' })).toEqual(['bad']);
});

test('the page of a webhook says how much is sent to it, what waits and for how long its receiver asked', async () => {
  const clock = { now: () => NOW_MS };
  const queue = queueInMemory(new MemoryStores(), new FakeClock());
  const owed = [1, 2, 3].map((n) => newDelivery(n, { prefix: PREFIX, createdAtMs: NOW_MS - 5_000 }));
  const [first, ...others] = await queue.enqueue(
    owed,
    claimOptions(NOW_MS - 1_000, { laneCapacity: () => 2 }),
  );
  if (first === undefined) throw new Error('no delivery was claimed');
  expect(others).toHaveLength(1);
  await queue.report([retryAt(first, NOW_MS - 500, NOW_MS + 60_000, answered(429, '20'))]);
  const store = { readStream: async () => [] };
  const engines = { requests: () => ({ lastUses: async () => new Map() }) };
  const parts = { directory: directoryOf(...withWebhook, rateSet(20)), queue, store, clock, engines };
  const page = await keyPage({ parts, name: PREFIX } as unknown as PageContext);
  const text = page.parts.flatMap((part) => (part !== null && 'type' in part ? render(part) : [])).join('');
  for (const [name, value] of [
    ['Rate per second', '20'],
    ['Under way', '1'],
    ['Answer', '250 ms'],
    ['Waiting', '1'],
  ])
    expect(text).toContain(`<dt>${name}</dt><dd>${value}</dd>`);
  expect(text).toMatch(/<dt>Asked to wait until<\/dt><dd><time [^>]*2026-09-10T00:00:19\.750Z/);
});

describe('what is known', () => {
  test('is the value with its time, or why it is not, and a fault of the program is none of both', async () => {
    const now = (): number => 5;
    expect(await known(async () => 1, now)).toEqual({ value: 1, atMs: 5 });
    const away = new FuelError('STORE_UNAVAILABLE', 'mongodb is away');
    expect(await known(() => Promise.reject(away), now)).toEqual({ unknown: 'mongodb is away' });
    expect(await known(() => new Promise(() => undefined), now, 1)).toEqual({
      unknown: 'the store does not answer',
    });
    await expect(known(() => Promise.reject(new TypeError('broken')), now)).rejects.toThrow('broken');
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    await known(async () => 1, now);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is read once for all who ask in its time, and again after a failure', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let [reads, fails] = [0, true];
    const read = shared(
      async () => {
        reads += 1;
        if (fails) throw new Error('away');
        return reads;
      },
      { ageMs: 2_000, maxAgeMs: 5_000 },
    );
    await expect(Promise.all([read(), read()])).rejects.toThrow('away');
    expect(reads).toBe(1);
    fails = false;
    expect(await Promise.all([read(), read(), read()])).toEqual([2, 2, 2]);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(await read()).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(await read()).toBe(3);
  });

  test('that takes long is read less often, fifty times its length later or at its greatest age', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const readsAfter = async (lengthMs: number, restMs: number): Promise<number> => {
      let reads = 0;
      const read = shared(
        async () => {
          reads += 1;
          await new Promise((resolve) => setTimeout(resolve, lengthMs));
        },
        { ageMs: 2_000, maxAgeMs: 5_000 },
      );
      void read();
      await vi.advanceTimersByTimeAsync(lengthMs + restMs);
      void read();
      return reads;
    };
    expect([await readsAfter(40, 1_999), await readsAfter(40, 2_000)]).toEqual([1, 2]);
    expect([await readsAfter(80, 3_999), await readsAfter(80, 4_000)]).toEqual([1, 2]);
    expect([await readsAfter(9_000, 4_999), await readsAfter(9_000, 5_000)]).toEqual([1, 2]);
  });
});
