import {
  type AllStreamResolvedEvent,
  END,
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  type ResolvedEvent,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { expect, onTestFinished, test } from 'vitest';
import {
  describeBoth,
  type OpenClient,
  unique,
} from '../../support/event-store/eventstoredb-double/engines-under-test.ts';
import { nodeInfoAt } from '../../support/event-store/eventstoredb-under-test.ts';

/** A group that writes a checkpoint every tenth of a second, and the streams of one test. */
function checkpointedGroup(open: OpenClient) {
  const client = open();
  const [name, stream] = [unique('group'), unique('transaction')];
  const settings = persistentSubscriptionToAllSettingsFromDefaults({
    startFrom: END,
    checkPointAfter: 100,
    checkPointLowerBound: 1,
    checkPointUpperBound: 1_000,
  });
  const record = async (...names: string[]): Promise<void> => {
    for (const each of names) {
      await client.appendToStream(`${stream}-${each}`, jsonEvent({ type: 'Named', data: { name: each } }));
    }
  };
  const lastOf = async (of: string): Promise<ResolvedEvent['event']> => {
    let last: ResolvedEvent['event'];
    try {
      for await (const { event } of client.readStream(of)) last = event;
    } catch (error) {
      if (!(error instanceof StreamNotFoundError)) throw error;
    }
    return last;
  };
  /** Acknowledges all events up to the one of this name. Returns the names of the test's own events. */
  const takeUntil = async (last: string): Promise<string[]> => {
    const names: string[] = [];
    const consumer = client.subscribeToPersistentSubscriptionToAll(name, { bufferSize: 50 });
    consumer.on('data', (event) => {
      const { streamId = '', data } = event.event ?? {};
      if (streamId.startsWith(stream)) names.push((data as { readonly name: string }).name);
      void consumer.ack(event);
    });
    await expect.poll(() => names.at(-1)).toBe(last);
    const inFlight = async () =>
      (await client.getPersistentSubscriptionToAllInfo(name)).stats.totalInFlightMessages;
    await expect.poll(inFlight).toBe(0); // acknowledgements sent right before the end may be lost
    await consumer.unsubscribe();
    return names;
  };
  /** Waits until the group's checkpoint covers this event. Returns the checkpoint's own position. */
  const passed = async (event: string) => {
    const end = (await lastOf(`${stream}-${event}`))?.position?.commit ?? 0n;
    const checkpoint = () => lastOf(`$persistentsubscription-$all::${name}-checkpoint`);
    const covered = async () => BigInt(/^C:(\d+)\//.exec(String((await checkpoint())?.data))?.[1] ?? -1);
    await expect.poll(covered).toBeGreaterThanOrEqual(end);
    return (await checkpoint())?.position as { readonly commit: bigint; readonly prepare: bigint };
  };
  return {
    client,
    stream,
    record,
    takeUntil,
    passed,
    create: () => client.createPersistentSubscriptionToAll(name, settings),
    /** Has the node load the group again from its checkpoint, as after a restart. */
    reload: () => client.updatePersistentSubscriptionToAll(name, settings),
  };
}

// How a server treats the records that it hides is the reason for decision 0021.
describeBoth('a record that reads of the log do not show', (open) => {
  test('takes a position, and a subscription after that position leaves out the next event', async () => {
    const group = checkpointedGroup(open);
    const { client, stream } = group;
    await group.create();
    await group.record('before');
    await group.takeUntil('before');
    const fromPosition = await group.passed('before');
    await group.record('next', 'second');
    const shown: AllStreamResolvedEvent[] = [];
    for await (const event of client.readAll({ fromPosition, maxCount: 100 })) shown.push(event);
    expect(shown.map(({ event }) => event?.streamId)).toContain(`${stream}-next`);
    const places = shown.map(({ event }) => event?.position.commit ?? 0n);
    expect(places[0]).toBeGreaterThan(fromPosition.commit);
    const subscription = client.subscribeToAll({ fromPosition });
    const handed: AllStreamResolvedEvent[] = [];
    subscription.on('data', (event) => handed.push(event));
    onTestFinished(() => subscription.unsubscribe());
    await expect.poll(() => handed.length).toBeGreaterThan(0);
    const { name } = await nodeInfoAt(open.url);
    // KurrentDB continues after the position itself.
    expect(handed[0]?.event?.position.commit).toBe(places[name === 'KurrentDB' ? 0 : 1]);
  });
});

describeBoth('a group without a filter', (open) => {
  test('loses nothing when it is loaded again', async () => {
    const group = checkpointedGroup(open);
    await group.create();
    await group.record('a');
    await group.takeUntil('a');
    await group.passed('a');
    await group.record('b', 'c');
    await group.reload();
    await group.record('d');
    expect((await group.takeUntil('d')).filter((name) => name !== 'a')).toEqual(['b', 'c', 'd']);
  });
});
