import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { projectEvent } from '../../src/records/project-event.ts';
import { keyIssued, opened, webhookSet } from '../support/accounts/account-samples.ts';
import { listed } from '../support/deliveries/listed.ts';
import { flipData, flipPage } from '../support/event-store/flip-bytes.ts';
import { commandLine } from '../support/service/command-line.ts';
import { confirmed, linesOf, voided } from '../support/transactions/e2e-samples.ts';
import { rowIn } from '../support/transactions/row-in.ts';

const COUNT = 60;
const RESTORE = 'restore events.db from a backup';

/** Makes transactions 1 to 60 (20 is voided), all projected, owed to one key and in agreement. */
async function start() {
  const cli = commandLine();
  const { withEngines, fuel, done } = cli;
  await withEngines((engines) => engines.queue().logId());
  await cli.account(opened(), keyIssued(), webhookSet());
  const recorded = [...Array.from({ length: COUNT }, (_, n) => confirmed(n + 1)), voided(20)];
  await fuel('transaction', 'import', cli.file('events.jsonl', linesOf(recorded)));
  await withEngines(async (engines) => {
    const [store, view] = [engines.store(), engines.view()];
    const { generation } = await view.reset(await storeIdentity(store, systemClock), 0);
    const streams = await store.readStreams(Array.from({ length: COUNT }, (_, n) => `transaction-${n + 1}`));
    await view.apply(streams.flat().map(projectEvent), { generation, position: await store.head() });
  });
  await fuel('verify', '--repair');
  const before = await done('verify');
  expect(before).toMatchObject({
    view: { differences: 0 },
    deliveries: { owed: COUNT, missing: 0, surplus: 0 },
  });
  const all = async () => [
    await withEngines((engines) => engines.view().rowsAfter(0, 100)),
    await withEngines((engines) => listed(engines.queue())),
  ];
  return { ...cli, all, events: join(process.env.FUEL_DATA_DIR ?? '', 'events.db') };
}

describe('an event whose bytes are damaged', () => {
  test.each([
    ['its data', (path: string) => flipData(path, '{"transaction_id":30,')],
    ['a void', (path: string) => flipData(path, '{"transaction_id":20,"account_id":7,"voided_at"', 90)],
    ['a name in it', (path: string) => flipData(path, 'Ring Road', 4)],
    ['its type', (path: string) => flipData(path, 'TransactionConfirmed', 5)],
  ])('is named with what to restore, and nothing of it is repaired: %s', async (what, damage) => {
    const { fuel, all, events } = await start();
    const before = await all();
    damage(events);
    const each = [
      ['verify'],
      ['verify', '--repair'],
      ['verify', 'view'],
      ['verify', 'deliveries', '--repair'],
    ];
    // A verification waits a second before it names differences, so all four are tried for one kind of damage.
    for (const args of what === 'its data' ? each : each.slice(1, 2)) {
      const { code, stderr, json } = await fuel(...args, '--json');
      expect(code).toBe(1);
      expect(stderr).toMatch(/damaged: event \d+ of transaction-\d+ \(position \d+\) cannot be read: /);
      expect(stderr).toContain(RESTORE);
      expect(json).toMatchObject({ damaged: expect.any(Number) });
      expect(stderr).not.toMatch(/surplus|missing|differing|repaired \d/);
    }
    expect(await all()).toEqual(before);
  });

  test('of an account leaves its deliveries unjudged', async () => {
    const { fuel, all, events } = await start();
    const before = await all();
    flipData(events, '"url":"https', 30);
    const { code, stderr, json } = await fuel('verify', '--repair', '--json');
    expect([code, json]).toMatchObject([
      1,
      { deliveries: { missing: 0, surplus: 0, not_judged: COUNT }, damaged: 1 },
    ]);
    expect(stderr).toMatch(/event \d of account-7 /);
    expect(await all()).toEqual(before);
  });

  test('does not keep what others differ in from being repaired', async () => {
    const { fuel, withEngines, events } = await start();
    await withEngines((engines) => engines.view().replace(31, []));
    flipData(events, '{"transaction_id":30,');
    const { code, stderr } = await fuel('verify', 'view', '--repair');
    expect([code, stderr]).toEqual([1, expect.stringContaining('view: repaired 1 of 1')]);
    expect(await withEngines((engines) => rowIn(engines.view(), 31))).toMatchObject({ id: 31 });
  });

  test('is not redelivered, and no view is built without it', async () => {
    const { fuel, withEngines, events } = await start();
    const [delivery] = await withEngines((engines) => listed(engines.queue(), { transactionIds: [30] }));
    flipData(events, '{"transaction_id":30,');
    const redelivered = await fuel('delivery', 'redeliver', delivery?.id ?? '', '--force');
    expect([redelivered.code, redelivered.stderr]).toEqual([1, expect.stringContaining('cannot be read')]);
    const rebuilt = await fuel('projection', 'rebuild', 'transactions');
    expect([rebuilt.code, rebuilt.stderr]).toEqual([1, expect.stringContaining(RESTORE)]);
    expect(await withEngines((engines) => rowIn(engines.view(), 30))).toMatchObject({ id: 30 });
  });
});

test('a page of events that cannot be read is named with its file and what to restore, and nothing is repaired', async () => {
  const { fuel, all, events } = await start();
  const before = await all();
  flipPage(events, '{"transaction_id":30,');
  for (const command of [
    ['verify', '--repair'],
    ['projection', 'rebuild', 'transactions'],
  ]) {
    const { code, stderr } = await fuel(...command);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`fuel: ${events} is damaged`)]);
  }
  expect((await fuel('doctor')).stdout).toMatch(/events\.db is damaged/);
  expect(await all()).toEqual(before);
});
