import {
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  START,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { expect, test } from 'vitest';
import {
  describeBoth,
  type OpenClient,
  unique,
} from '../../support/event-store/eventstoredb-double/engines-under-test.ts';
import { nodeInfoAt } from '../../support/event-store/eventstoredb-under-test.ts';

/** The differences of EventStoreDB and KurrentDB. Each server must behave as its own entry says. */
describeBoth('a server of its kind', (open) => {
  const of = async <T>(byKind: { EventStoreDB: T; KurrentDB: T }): Promise<T> =>
    byKind[(await nodeInfoAt(open.url)).name];

  test('tells its version', async () => {
    const { version } = await nodeInfoAt(open.url);
    expect(version).toMatch(await of({ EventStoreDB: /^2[34]\.\d+\.\d+$/, KurrentDB: /^2[56]\.\d+\.\d+$/ }));
  });

  test('names the type of the checkpoints of groups', async () => {
    const client = open();
    const group = unique('group');
    const settings = { startFrom: START, checkPointAfter: 100, checkPointLowerBound: 1 } as const;
    await client.createPersistentSubscriptionToAll(
      group,
      persistentSubscriptionToAllSettingsFromDefaults(settings),
    );
    const consumer = client.subscribeToPersistentSubscriptionToAll(group);
    consumer.on('data', (event) => void consumer.ack(event));
    await client.appendToStream(unique('account'), jsonEvent({ type: 'Named', data: {} }));
    const type = await of({ EventStoreDB: 'SubscriptionCheckpoint', KurrentDB: '$SubscriptionCheckpoint' });
    const types = () => typesIn(open, `$persistentsubscription-$all::${group}-checkpoint`);
    await expect.poll(types).toContain(type);
    expect(new Set(await types()).size).toBe(1);
    await consumer.unsubscribe();
    await client.deletePersistentSubscriptionToAll(group);
  });

  test('refuses a position at which no record begins', async () => {
    const between = { fromPosition: { commit: 7n, prepare: 7n } };
    const read = async (): Promise<void> => {
      for await (const _ of open().readAll({ ...between, maxCount: 1 }));
    };
    const answers = await of({
      EventStoreDB: ['Unexpected ReadAllResult: Error', 'Exception was thrown by handler'],
      KurrentDB: ['Unexpected ReadAllResult: InvalidPosition', 'Trying to read from an invalid position'],
    });
    await expect(read()).rejects.toThrow(answers[0]);
    const subscribed = new Promise((_, reject) => open().subscribeToAll(between).on('error', reject));
    await expect(subscribed).rejects.toThrow(answers[1]);
  });
});

async function typesIn(open: OpenClient, stream: string): Promise<string[]> {
  const types: string[] = [];
  try {
    for await (const { event } of open().readStream(stream)) types.push(event?.type ?? '');
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return types;
}
