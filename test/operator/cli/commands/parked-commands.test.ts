import { describe, expect, onTestFinished, test } from 'vitest';
import { EventStoreDbConnection } from '../../../../src/engines/eventstoredb/driver/connection.ts';
import { parkedStream } from '../../../../src/engines/eventstoredb/driver/events.ts';
import { readEnd } from '../../../../src/engines/eventstoredb/log/reads.ts';
import { DELIVERIES_GROUP } from '../../../../src/push/fan-out/run-fan-out.ts';
import { describeWithMongodb } from '../../../support/engines/mongodb.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { commandLineOnEngines } from '../../../support/service/command-line-on-engines.ts';
import { confirmed } from '../../../support/transactions/e2e-samples.ts';

const GUESSED = { type: 'TransactionGuessed', data: { transaction_id: 3 } };

type Parts = ReturnType<typeof commandLine>;

/** As a process of the role does at its start: it handles what is parked again, and parks it again. */
function parkAgain({ withEngines }: Parts): Promise<void> {
  return withEngines(async (engines) => {
    const subscriptions = engines.subscriptions();
    const settings = { prefixes: ['transaction-'], ackTimeoutMs: 60_000 };
    await subscriptions.ensureGroup(DELIVERIES_GROUP, settings);
    await subscriptions.replayParked(DELIVERIES_GROUP);
    const { signal } = new AbortController();
    const consumer = subscriptions.consume(DELIVERIES_GROUP, { bufferSize: 9, signal });
    for await (const event of consumer) {
      await consumer.park(event, 'it cannot be read');
      break;
    }
    await expect.poll(async () => (await subscriptions.parked(DELIVERIES_GROUP)).length).toBe(1);
  });
}

/** A bad event that the view and the deliveries have parked. */
async function parkedIn(parts: Parts) {
  const { done, append, withEngines } = parts;
  await append('transaction-3', [GUESSED]);
  await done('projection', 'rebuild', 'transactions');
  await parkAgain(parts);
  const lists = async () => [
    await done('projection', 'parked'),
    await done('projection', 'parked', '--follower', DELIVERIES_GROUP),
    (await done('projection', 'status')).map(({ parked }: { parked: number }) => parked),
  ];
  const recorded = () => withEngines((engines) => engines.view().parked());
  const [{ position }] = await lists();
  return { position: String(position), lists, recorded };
}

const NOTHING = [[], [], [0, 0, 0, 0]];

async function isSkipped(parts: Parts): Promise<void> {
  const { fuel, done, eventsOf } = parts;
  const { position, lists, recorded } = await parkedIn(parts);
  expect((await lists())[2]).toEqual([0, 1, 1, 0]);
  const before = String(Number(position) - 1);
  expect((await fuel('projection', 'parked', 'skip', before, '--reason', 'no such')).code).toBe(1);
  const skip = ['projection', 'parked', 'skip', position, '--reason', 'sent again as 4'];
  expect(await done(...skip)).toEqual({ skipped: 1 });
  expect(await lists()).toEqual(NOTHING);
  expect(await done(...skip)).toEqual({ skipped: 0 });
  expect((await fuel('projection', 'parked', 'retry', position)).code).toBe(1);
  expect(await done('projection', 'parked', 'retry', '--all')).toEqual({ retried: 0, still_parked: 0 });
  await done('projection', 'rebuild', 'transactions');
  await parkAgain(parts);
  expect(await lists()).toEqual(NOTHING);
  expect(await recorded()).toMatchObject([{ stream: 'transaction-3' }]);
  const skips = (await eventsOf('operations')).filter(({ type }) => type === 'ParkedSkipped');
  expect(skips.map(({ data }) => data)).toEqual([
    { position: Number(position), stream: 'transaction-3', revision: 0, reason: 'sent again as 4' },
  ]);
}

describe('a parked event of a transaction that can never be applied', () => {
  test('is listed and counted no more once it is skipped: not when it is parked again, nor after a rebuild', async () => {
    await isSkipped(commandLine());
  });

  test('is skipped by its place: one that another follower alone has parked too, and no other position', async () => {
    const parts = commandLine();
    const { fuel, done, append, eventsOf, withEngines } = parts;
    await append('transaction-3', [GUESSED]);
    await parkAgain(parts);
    const deliveries = ['--follower', DELIVERIES_GROUP];
    const { position } = await done('projection', 'parked', ...deliveries);
    const skip = (at: number) => fuel('projection', 'parked', 'skip', String(at), '--reason', 'sent again');
    expect((await skip(position + 1)).code).toBe(1);
    expect((await skip(position)).code).toBe(0);
    expect((await eventsOf('operations'))[0]?.type).toBe('StoreNamed'); // no command changes a store without a name
    expect(await done('projection', 'parked', ...deliveries)).toEqual([]);
    expect(await withEngines((engines) => engines.subscriptions().parked(DELIVERIES_GROUP))).toHaveLength(1);
  });
});

test('what the deliveries have parked is handed to their consumers again by retry --all, and what the notices wait for is not', async () => {
  const parts = commandLine();
  const { fuel, done, append } = parts;
  await append('transaction-1', [confirmed(1)]);

  const parked = (follower: string, ...retry: readonly string[]) =>
    done('projection', 'parked', ...retry, '--follower', follower);
  expect(await parked(DELIVERIES_GROUP)).toEqual([]);
  await parkAgain(parts);
  const { position, ...event } = await parked(DELIVERIES_GROUP);
  expect(event).toEqual({
    follower: DELIVERIES_GROUP,
    stream: 'transaction-1',
    revision: 0,
    type: 'TransactionConfirmed',
    reason: 'it cannot be read',
    parked_at: expect.any(String),
  });
  expect(await done('projection', 'parked')).toEqual([]);
  const one = ['projection', 'parked', 'retry', String(position), '--follower', DELIVERIES_GROUP];
  expect((await fuel(...one)).code).toBe(2);
  expect(await parked(DELIVERIES_GROUP, 'retry', '--all')).toEqual({ retried: 1, still_parked: null });
  expect(await parked(DELIVERIES_GROUP)).toEqual([]);
  expect(await parked('notices', 'retry', '--all')).toEqual({ retried: 0, still_parked: 0 });
});

describeWithMongodb('with engines', () => {
  test('a parked event of a transaction is skipped as well', { timeout: 30_000 }, async () => {
    await isSkipped(await commandLineOnEngines());
  });

  test('an erasure empties what the deliveries have parked, where their processes run; otherwise these do so when they start', {
    timeout: 30_000,
  }, async () => {
    const { url, ...parts } = await commandLineOnEngines();
    await parkedIn(parts);
    const connection = new EventStoreDbConnection(url);
    onTestFinished(() => connection.close());
    const firstLink = () => readEnd(connection, parkedStream(DELIVERIES_GROUP), 'first');
    const erase = ['transaction', 'erase', '3', '--reason', 'asked for', '--yes'];
    await parts.done(...erase);
    expect(await firstLink()).toMatchObject({ revision: 0 });
    await parts.withEngines((engines) =>
      engines.coordination().report({
        id: 'other',
        roles: ['webhooks'],
        pid: 1,
        host: 'other',
        startedAtMs: Date.now(),
        seenAtMs: Date.now(),
        isReady: true,
      }),
    );
    await parts.done(...erase);
    expect(await firstLink()).toBeUndefined();
  });
});
