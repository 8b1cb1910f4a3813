import { setTimeout } from 'node:timers/promises';
import {
  type EventStoreDBClient,
  jsonEvent,
  PARK,
  type PersistentSubscriptionToAllResolvedEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  START,
  streamNameFilter,
  TimeoutError,
  UnavailableError,
} from '@eventstore/db-client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openClient, unique } from '../../support/event-store/eventstoredb-double/engines-under-test.ts';
import {
  type DoubleOptions,
  startEventStoreDbDouble,
} from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** For how long nothing must happen. */
const QUIET_MS = 250;

async function started(options: DoubleOptions = {}) {
  const double = await startEventStoreDbDouble(options);
  let isRunning = true;
  const stop = async (): Promise<void> => {
    if (isRunning) await double.stop();
    isRunning = false;
  };
  onTestFinished(stop);
  return { double, stop };
}

function named(name: string, id: string = crypto.randomUUID()): ReturnType<typeof jsonEvent> {
  return jsonEvent({ id, type: 'Named', data: { name } });
}

async function namesIn(client: EventStoreDBClient, stream: string): Promise<unknown[]> {
  const names: unknown[] = [];
  for await (const { event } of client.readStream(stream)) names.push(event?.data);
  return names.map((data) => (data as { readonly name: unknown }).name);
}

/** The streams of all events, with their positions. */
async function placesOf(client: EventStoreDBClient): Promise<Map<string | undefined, bigint | undefined>> {
  const places = new Map<string | undefined, bigint | undefined>();
  for await (const { event } of client.readAll()) places.set(event?.streamId, event?.position?.commit);
  return places;
}

describe('the double of EventStoreDB', () => {
  test('cuts every connection when it is stopped, and continues on the same port and files', async () => {
    const folder = temporaryFolder();
    const { double, stop } = await started({ folder });
    const { port } = double;
    const client = openClient(double.url);
    const id = crypto.randomUUID();
    const first = await client.appendToStream('account-1', named('a', id));
    const subscription = client.subscribeToAll();
    const broken = new Promise((resolve) => subscription.once('error', resolve));
    await new Promise((resolve) => subscription.once('caughtUp', resolve));
    await stop();
    expect(await broken).toBeInstanceOf(UnavailableError);
    await started({ folder, port });
    const later = openClient(double.url);
    expect(await namesIn(later, 'account-1')).toEqual(['a']);
    expect(
      await later.appendToStream('account-1', named('a', id), { expectedRevision: 'no_stream' }),
    ).toEqual(first);
    const second = await later.appendToStream('account-1', named('b'), { expectedRevision: 0n });
    expect(second.position?.commit).toBeGreaterThan(first.position?.commit ?? 0n);
  });

  test('forgets ids when it is stopped, as the real one does: a repeated append without a revision is recorded again', async () => {
    const folder = temporaryFolder();
    const { double, stop } = await started({ folder });
    const event = named('a');
    await openClient(double.url).appendToStream('account-1', event);
    await stop();
    const { double: again } = await started({ folder });
    const client = openClient(again.url);
    await client.appendToStream('account-1', event);
    expect(await namesIn(client, 'account-1')).toEqual(['a', 'a']);
  });

  test('keeps its groups, their parked events and their checkpoints', async () => {
    const folder = temporaryFolder();
    const { double, stop } = await started({ folder });
    const client = openClient(double.url);
    const checkpoints = { checkPointAfter: 0, checkPointLowerBound: 1, checkPointUpperBound: 2 };
    const settings = persistentSubscriptionToAllSettingsFromDefaults({ startFrom: START, ...checkpoints });
    const filter = streamNameFilter({ prefixes: ['transaction-'] });
    await client.createPersistentSubscriptionToAll('fan-out', settings, { filter });
    await client.appendToStream(
      'transaction-1',
      ['a', 'b', 'c'].map((name) => named(name)),
    );
    const held = await handedOut(client, 3, async (events, subscription) => {
      await subscription.ack(...events.slice(0, 1));
      await subscription.nack(PARK, 'parked', ...events.slice(1, 2));
    });
    expect(held).toHaveLength(3);
    const info = async () => (await client.getPersistentSubscriptionToAllInfo('fan-out')).stats;
    await expect.poll(info).toMatchObject({ parkedMessageCount: 1n, lastCheckpointedEventPosition: {} });
    const position = (await info()).lastCheckpointedEventPosition;
    await setTimeout(QUIET_MS);
    expect((await info()).lastCheckpointedEventPosition).toEqual(position); // its own checkpoint does not move it
    await stop();
    const { double: again } = await started({ folder });
    const later = openClient(again.url);
    await later.appendToStream('transaction-2', named('d'));
    const events = await handedOut(later, 2);
    expect(events.map(({ event }) => event?.data)).toEqual([{ name: 'c' }, { name: 'd' }]);
    const { stats, settings: kept } = await later.getPersistentSubscriptionToAllInfo('fan-out');
    expect(stats.parkedMessageCount).toBe(1n);
    expect(kept).toEqual(settings);
  });

  test('records an append that it leaves unanswered', async () => {
    const { double } = await started();
    const client = openClient(double.url);
    double.leaveUnanswered(1);
    let isAnswered = false;
    const event = named('a');
    const unanswered = client.appendToStream('account-1', event).then(
      () => {
        isAnswered = true;
      },
      () => undefined, // cancelled when the client is disposed
    );
    await expect.poll(async () => [...(await placesOf(client)).keys()]).toEqual(['account-1']);
    expect(await client.appendToStream('account-1', event)).toMatchObject({ nextExpectedRevision: 0n });
    expect(isAnswered).toBe(false);
    await client.dispose();
    await unanswered;
  });

  test('accepts calls while it is frozen, and answers them when it thaws', async () => {
    const { double } = await started();
    const client = openClient(double.url);
    await client.appendToStream('account-1', named('a'));
    double.freeze();
    const read = namesIn(client, 'account-1');
    const readByNew = namesIn(openClient(double.url), 'account-1');
    const quiet = setTimeout(QUIET_MS, 'nothing');
    expect(await Promise.race([read, readByNew, quiet])).toBe('nothing');
    double.thaw();
    expect(await Promise.all([read, readByNew])).toEqual([['a'], ['a']]);
  });

  test('drops live subscriptions as too slow', async () => {
    const { double } = await started();
    const subscription = openClient(double.url).subscribeToAll();
    const dropped = new Promise((resolve) => subscription.once('error', resolve));
    await expect.poll(() => double.dropFollowers()).toBe(1);
    expect(await dropped).toBeInstanceOf(TimeoutError);
    expect(double.dropFollowers()).toBe(0);
  });

  test('records bytes as they are given', async () => {
    const { double } = await started();
    const client = openClient(double.url);
    const bytes = { data: Buffer.from('{"name":'), metadata: Buffer.from('{"at"') };
    await double.record('account-1', { type: 'Broken', isJson: true, ...bytes });
    await double.record('account-1', { type: 'Bytes', isJson: false, ...bytes });
    const events = [];
    for await (const { event } of client.readStream('account-1')) events.push(event);
    expect(events[1]).toMatchObject({ type: 'Bytes', isJson: false });
    expect(events.slice(0, 1)).toMatchObject([{ type: 'Broken', isJson: true, data: '{"name":' }]);
    expect(Buffer.from(events[0]?.metadata as Uint8Array)).toEqual(bytes.metadata);
  });

  test('takes many appends at once, and answers each with its own position', async () => {
    const { double } = await started();
    const client = openClient(double.url);
    const streams = Array.from({ length: 200 }, () => unique('transaction'));
    const results = await Promise.all(streams.map((stream) => client.appendToStream(stream, named(stream))));
    const places = await placesOf(client);
    expect(places.size).toBe(200);
    expect(results.map(({ position }) => position?.commit)).toEqual(
      streams.map((stream) => places.get(stream)),
    );
  });
});

type GroupEvent = PersistentSubscriptionToAllResolvedEvent;
type Subscription = ReturnType<EventStoreDBClient['subscribeToPersistentSubscriptionToAll']>;

/** The first events that the group hands out; what is not answered stays the group's. */
async function handedOut(
  client: EventStoreDBClient,
  count: number,
  answer: (events: readonly GroupEvent[], subscription: Subscription) => Promise<void> = async () =>
    undefined,
): Promise<GroupEvent[]> {
  const events: GroupEvent[] = [];
  const subscription = client.subscribeToPersistentSubscriptionToAll('fan-out');
  subscription.on('error', () => undefined); // it breaks when the double is stopped
  subscription.on('data', (event: GroupEvent) => events.push(event));
  await expect.poll(() => events.length).toBeGreaterThanOrEqual(count);
  await answer(events, subscription);
  return events;
}
