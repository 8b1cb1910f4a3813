import {
  EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { onTestFinished } from 'vitest';
import type { Noise } from '../../contracts/event-store.contract.ts';
import { until } from '../waiting.ts';
import { unique } from './eventstoredb-double/engines-under-test.ts';

/** Makes the server write a group's checkpoint, in a stream that the log does not show. */
export async function groupNoise(url: string): Promise<Noise> {
  const client = EventStoreDBClient.connectionString(url);
  const group = unique('noise');
  const checkpoints = `$persistentsubscription-$all::${group}-checkpoint`;
  await client.createPersistentSubscriptionToAll(
    group,
    persistentSubscriptionToAllSettingsFromDefaults({
      startFrom: 'end',
      checkPointAfter: 100,
      checkPointLowerBound: 1,
      checkPointUpperBound: 1,
    }),
  );
  onTestFinished(async () => {
    await client.deletePersistentSubscriptionToAll(group);
    await client.dispose();
  });
  return async () => {
    const consumer = client.subscribeToPersistentSubscriptionToAll(group);
    consumer.on('data', (event) => void consumer.ack(event));
    const { position } = await client.appendToStream(group, jsonEvent({ type: 'Noise', data: {} }));
    await until(async () => (await endOf(client, checkpoints)) > (position?.commit ?? 0n));
    await consumer.unsubscribe();
  };
}

/** Returns the position of the last event of a stream; -1 if there is none. */
async function endOf(client: EventStoreDBClient, stream: string): Promise<bigint> {
  const last = client.readStream(stream, { direction: 'backwards', fromRevision: 'end', maxCount: 1 });
  let end = -1n;
  try {
    for await (const { event } of last) end = event?.position?.commit ?? end;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return end;
}
