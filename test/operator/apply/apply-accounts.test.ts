import { describe, expect, test } from 'vitest';
import { formatDateTime } from '../../../src/domain/values/date-time.ts';
import type { ApplyOptions } from '../../../src/operator/apply/apply-accounts.ts';
import { APPLY_AUTHOR, startApplying } from '../../support/accounts/applying.ts';

const NORTH = {
  account_id: 7,
  name: 'North Haulage',
  integration: 'on',
  contacts: ['it@north.example'],
  profiles: [{ profile: 'basic', from: '2026-01-01T00:00:00Z', to: null }],
  groups: [{ id: 3, name: 'Depots' }],
  corporates: [{ id: 31, name: 'North Depot', group_id: 3 }],
};
const NORTH_TYPES = [
  'AccountOpened',
  'IntegrationEnabled',
  'AccountContactsSet',
  'ChargingProfileSet',
  'CorporateGroupAdded',
  'CorporateAdded',
];
const some = (count: number, from = 100) =>
  Array.from({ length: count }, (_, index) => ({
    account_id: from + index,
    name: `Customer ${from + index}`,
  }));
const groups = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ id: from + index, name: `Group ${from + index}` }));

describe('accounts that are applied', () => {
  test('are recorded as the single commands would, all of one account together, and once', async () => {
    const { store, clock, run, typesOf } = startApplying();
    const first = await run([NORTH, { account_id: 8, name: 'Eight' }]);
    expect(first).toMatchObject({ counts: { applied: 2, unchanged: 0, refused: 0 }, refused: [] });
    expect(await typesOf(7)).toEqual(NORTH_TYPES);
    const [event] = await store.readStream('account-8');
    expect(event?.metadata).toMatchObject({ ...APPLY_AUTHOR, at: formatDateTime(clock.now()) });
    expect((await run([NORTH, { account_id: 8 }])).counts).toEqual({ applied: 0, unchanged: 2, refused: 0 });
    expect((await run([{ ...NORTH, integration: 'off' }])).counts.applied).toBe(1);
    expect(await typesOf(7)).toEqual([...NORTH_TYPES, 'IntegrationDisabled']);
  });

  test('are switched off with a reason; without one they are not where it is asked for', async () => {
    const { store, run, typesOf } = startApplying();
    await run([NORTH]);
    const off = [
      { account_id: 7, integration: 'off' },
      { account_id: 8, name: 'Eight', integration: 'off' },
    ];
    const refused = await run(off, { requiresReason: true });
    expect(refused).toMatchObject({
      counts: { applied: 1, refused: 1 },
      refused: [[1, expect.stringContaining('--reason')]],
    });
    expect(await typesOf(7)).toEqual(NORTH_TYPES);
    await run(off, { reason: 'unpaid', requiresReason: true });
    expect((await store.readStream('account-7')).at(-1)).toMatchObject({
      type: 'IntegrationDisabled',
      data: { reason: 'unpaid' },
    });
  });

  test('are refused line by line, and the rest goes in', async () => {
    const { run, typesOf } = startApplying();
    await run([NORTH]);
    const lines = [
      '\uFEFF',
      'broken',
      '[]',
      '{"account_id":7,"name":"Other","corporates":[{"id":31,"group_id":9}]}',
      '{"account_id":8,"nam":"Eight","contacts":["x"]}',
      '',
      '{"account_id":9}',
      `{"account_id":10,"x":${'['.repeat(64)}${']'.repeat(64)}}`,
      `{"account_id":11,"name":"${'x'.repeat(65_536)}"}`,
      '{"account_id":12,"name":"Twelve"}\r',
    ];
    expect(await run(lines.join('\n'))).toMatchObject({
      counts: { applied: 1, unchanged: 0, refused: 7 },
      refused: [
        [2, expect.stringMatching(/^is not JSON: /)],
        [3, 'is not an object with "account_id"'],
        [
          5,
          expect.stringMatching(
            /^contacts.0: must be an e-mail address; nam: is not a member here \(they are acc/,
          ),
        ],
        [8, 'nests deeper than the 64 levels that a line may have'],
        [9, 'is longer than 65536 bytes'],
        [4, expect.stringMatching(/^account-7: account 7 has no corporate group 9/)],
        [7, expect.stringMatching(/^account-9: account 9 is not open. Give it a name/)],
      ],
    });
    expect(await typesOf(12)).toEqual(['AccountOpened']);
    expect(await typesOf(7)).toEqual(NORTH_TYPES);
  });

  test('follow in the order of the lines where one is named twice', async () => {
    const { run, typesOf, exported } = startApplying();
    const lines = [
      { account_id: 7, name: 'North', groups: [{ id: 3, name: 'A' }] },
      { account_id: 7, corporates: [{ id: 1, group_id: 3 }] },
      { account_id: 7, groups: [{ id: 3, name: 'B' }] },
      { account_id: 7, corporates: [{ id: 1, name: 'One', group_id: 3 }] },
    ];
    expect(await run(lines)).toMatchObject({
      counts: { applied: 3, unchanged: 0, refused: 1 },
      refused: [[2, expect.stringContaining('corporate 1 is new')]],
    });
    expect(await typesOf(7)).toEqual([
      'AccountOpened',
      'CorporateGroupAdded',
      'CorporateGroupRenamed',
      'CorporateAdded',
    ]);
    expect(await exported()).toMatchObject([{ groups: [{ id: 3, name: 'B' }] }]);
  });

  test('are recorded in commits of a few hundred events for one account, however many lines name it', async () => {
    const { store, run, typesOf } = startApplying();
    const sizes: number[] = [];
    const watched: ApplyOptions['store'] = {
      readStreams: (streams) => store.readStreams(streams),
      append: (appends) => {
        sizes.push(...appends.map(({ events }) => events.length));
        return store.append(appends);
      },
    };
    const lines = [
      { account_id: 7, name: 'North' },
      ...[0, 1, 2, 3].map((part) => ({ account_id: 7, groups: groups(300, 300 * part) })),
    ];
    expect((await run(lines, { store: watched })).counts).toEqual({ applied: 5, unchanged: 0, refused: 0 });
    expect(sizes).toEqual([601, 600]);
    expect(await typesOf(7)).toHaveLength(1_201);
  });

  test('are taken in batches of a thousand, or of 256 KiB', async () => {
    const { run } = startApplying();
    expect((await run(some(1_001))).progress.map(({ applied }) => applied)).toEqual([1_000, 1_001]);
    const large = some(20, 5_000).map((line) => ({
      ...line,
      contacts: Array(100).fill(`${'x'.repeat(200)}@y.example`),
    }));
    const { progress } = await run(large);
    expect(progress.length).toBeGreaterThan(1);
    expect(progress.at(-1)).toEqual({ applied: 20, unchanged: 0, refused: 0 });
  });

  test('are decided again where another writer was first', async () => {
    const { store, run, typesOf } = startApplying();
    let first = true;
    const raced: ApplyOptions['store'] = {
      readStreams: (streams) => store.readStreams(streams),
      async append(appends) {
        if (first) {
          first = false;
          await run([{ account_id: 7, name: 'North Haulage', groups: [{ id: 3, name: 'Yards' }] }]);
        }
        return store.append(appends);
      },
    };
    expect((await run([NORTH, { account_id: 8, name: 'Eight' }], { store: raced })).counts.applied).toBe(2);
    expect(await typesOf(7)).toEqual([
      'AccountOpened',
      'CorporateGroupAdded',
      'IntegrationEnabled',
      'AccountContactsSet',
      'ChargingProfileSet',
      'CorporateGroupRenamed',
      'CorporateAdded',
    ]);
  });

  test('are left alone where their stream cannot be read', async () => {
    const { run, append, typesOf } = startApplying();
    await append('account-7', { type: 'AccountFrozen', data: {} });
    await append('account-8', { type: 'IntegrationEnabled', data: { account_id: 8 } });
    expect(
      await run([
        { account_id: 7, name: 'x' },
        { account_id: 8, name: 'x' },
      ]),
    ).toMatchObject({
      counts: { applied: 0, unchanged: 0, refused: 2 },
      refused: [
        [
          1,
          "account-7: it can't be read: event 0 of its stream, AccountFrozen: unknown event type AccountFrozen",
        ],
        [
          2,
          "account-8: it can't be read: event 0 of its stream, IntegrationEnabled: " +
            'IntegrationEnabled before the account was opened',
        ],
      ],
    });
    expect(await typesOf(7)).toHaveLength(1);
  });
});

describe('a dry run', () => {
  test('records nothing and tells what would be', async () => {
    const { store, run } = startApplying();
    await run([{ account_id: 7, name: 'North Haulage' }]);
    const head = await store.head();
    const { counts, applied } = await run([NORTH, { account_id: 8 }], { dryRun: true });
    expect(counts).toEqual({ applied: 1, unchanged: 0, refused: 1 });
    expect(applied.map(({ type }) => type)).toEqual(NORTH_TYPES.slice(1));
    expect(await store.head()).toBe(head);
  });

  test('judges a line by those before it, as if they were recorded, also in another batch', async () => {
    const { store, run } = startApplying();
    const lines = [
      { account_id: 7, name: 'North' },
      ...some(1_000),
      { account_id: 7, groups: [{ id: 3, name: 'Depots' }] },
      { account_id: 7, groups: [{ id: 3, name: 'Depots' }] },
    ];
    expect((await run(lines, { dryRun: true })).counts).toEqual({ applied: 1_002, unchanged: 1, refused: 0 });
    expect(await store.head()).toBe(0);
    expect((await run(lines)).counts).toEqual({ applied: 1_002, unchanged: 1, refused: 0 });
  });
});
