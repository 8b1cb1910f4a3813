import {
  END,
  type EventStoreDBClient,
  jsonEvent,
  PARK,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionDroppedError,
  PersistentSubscriptionExistsError,
  type PersistentSubscriptionToAll,
  type PersistentSubscriptionToAllResolvedEvent,
  type PersistentSubscriptionToAllSettings,
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

type GroupEvent = PersistentSubscriptionToAllResolvedEvent;

/** A group of its own streams: named events go in, and `handed` has what its consumers got. */
class GroupAtWork {
  readonly client: EventStoreDBClient;
  readonly name = unique('group');
  readonly prefix = unique('transaction');
  readonly parkedStream = `$persistentsubscription-$all::${this.name}-parked`;

  constructor(client: EventStoreDBClient) {
    this.client = client;
  }

  static async create(
    open: OpenClient,
    settings: Partial<PersistentSubscriptionToAllSettings> = {},
  ): Promise<GroupAtWork> {
    const group = new GroupAtWork(open());
    await group.client.createPersistentSubscriptionToAll(group.name, settingsWith(settings));
    return group;
  }

  async record(stream: string, ...names: string[]): Promise<void> {
    const events = names.map((name) => jsonEvent({ type: 'Named', data: { name } }));
    await this.client.appendToStream(`${this.prefix}-${stream}`, events);
  }

  consume(bufferSize = 10): Consumer {
    const subscription = this.client.subscribeToPersistentSubscriptionToAll(this.name, { bufferSize });
    return new Consumer(subscription, this.prefix);
  }

  /** The parked stream, which does not exist until an event was parked. */
  async parked(): Promise<{ name: string | undefined; reason: unknown; revision: bigint | undefined }[]> {
    const events = await read(this.client, this.parkedStream);
    return events.map(({ event, link }) => {
      const { reason } = (link?.metadata ?? {}) as { reason?: unknown };
      return { name: event && nameOf({ event }), reason, revision: link?.revision };
    });
  }
}

class Consumer {
  readonly events: GroupEvent[] = [];
  readonly subscription: PersistentSubscriptionToAll;
  error: unknown;
  hasEnded = false;

  /** Keeps the events of the group's own streams and acknowledges those of other tests. */
  constructor(subscription: PersistentSubscriptionToAll, prefix: string) {
    this.subscription = subscription;
    subscription.on('data', (event: GroupEvent) => {
      const isOwn = event.event?.streamId.startsWith(prefix) ?? true;
      if (isOwn) this.events.push(event);
      else void subscription.ack(event);
    });
    subscription.on('error', (error) => {
      this.error = error;
    });
    subscription.on('end', () => {
      this.hasEnded = true;
    });
    onTestFinished(() => subscription.unsubscribe());
  }

  /** The names and retry counts of the events that it was handed so far. */
  get handed(): string[] {
    return this.events.map((event) => `${nameOf(event)} ${event.retryCount}`);
  }

  async take(count: number): Promise<GroupEvent[]> {
    await expect.poll(() => this.events.length).toBeGreaterThanOrEqual(count);
    return this.events.slice(0, count);
  }
}

function settingsWith(settings: Partial<PersistentSubscriptionToAllSettings>) {
  return persistentSubscriptionToAllSettingsFromDefaults({ startFrom: END, ...settings });
}

function nameOf({ event }: Pick<ResolvedEvent, 'event'>): string {
  return (event?.data as { name?: string } | undefined)?.name ?? event?.type ?? 'gone';
}

/** Reads a stream; empty if it does not exist. */
async function read(client: EventStoreDBClient, stream: string): Promise<ResolvedEvent[]> {
  const found: ResolvedEvent[] = [];
  try {
    for await (const event of client.readStream(stream, { resolveLinkTos: true })) found.push(event);
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return found;
}

describeBoth('a persistent subscription', (open) => {
  test('is created once, distinguished from a missing one, and deleted', async () => {
    const group = await GroupAtWork.create(open, { messageTimeout: 4_321 });
    const { client, name } = group;
    const again = client.createPersistentSubscriptionToAll(name, settingsWith({}));
    await expect(again).rejects.toThrow(PersistentSubscriptionExistsError);
    const { settings, stats } = await client.getPersistentSubscriptionToAllInfo(name);
    expect(settings).toMatchObject({ messageTimeout: 4_321 });
    expect(stats.parkedMessageCount).toBe(0n);
    const configuration = await read(client, '$persistentSubscriptionConfig');
    expect(configuration.at(-1)?.event?.data).toMatchObject({
      entries: expect.arrayContaining([
        expect.objectContaining({ stream: '$all', group: name, messageTimeout: 4_321 }),
      ]),
    });
    await client.deletePersistentSubscriptionToAll(name);
    const missing = PersistentSubscriptionDoesNotExistError;
    await expect(client.getPersistentSubscriptionToAllInfo(name)).rejects.toThrow(missing);
    await expect(client.updatePersistentSubscriptionToAll(name, settingsWith({}))).rejects.toThrow(missing);
    await expect(client.replayParkedMessagesToAll(name)).rejects.toThrow(missing);
    await expect(client.deletePersistentSubscriptionToAll(name)).rejects.toThrow(missing);
    const consumer = group.consume();
    await expect.poll(() => consumer.error).toBeInstanceOf(missing);
  });

  test('hands out at once, as retried, the events of a consumer that left', async () => {
    const group = await GroupAtWork.create(open);
    await group.record('1', 'a', 'b');
    const dead = group.consume();
    await dead.take(2);
    await dead.subscription.unsubscribe();
    await expect.poll(() => dead.hasEnded).toBe(true);
    const other = group.consume();
    await other.take(2);
    expect(other.handed).toEqual(['a 1', 'b 1']);
  });

  test('replays parked events by their links, at the links’ positions, once', async () => {
    const group = await GroupAtWork.create(open);
    await group.record('1', 'a', 'b');
    const consumer = group.consume();
    await consumer.subscription.nack(PARK, 'parked', ...(await consumer.take(2)));
    await expect.poll(() => group.parked().then(({ length }) => length)).toBe(2);
    const [first] = await read(group.client, group.parkedStream);
    await group.client.replayParkedMessagesToAll(group.name);
    const [, , a, b] = await consumer.take(4);
    expect(consumer.handed.slice(2)).toEqual(['a 0', 'b 0']);
    expect(a?.link).toMatchObject({ revision: 0n, type: '$>', streamId: group.parkedStream, isJson: false });
    expect(a?.link?.position).toEqual(first?.link?.position);
    expect(a?.event?.position).toEqual(first?.link?.position);
    expect(a?.commitPosition).toBe(first?.link?.position?.commit);
    await expect.poll(() => group.parked()).toEqual([]);
    if (a !== undefined) await consumer.subscription.nack(PARK, 'once more', a);
    if (b !== undefined) await consumer.subscription.ack(b);
    const onceMore = { name: 'a', reason: "Client explicitly NAK'ed message.\nonce more", revision: 2n };
    await expect.poll(() => group.parked()).toEqual([onceMore]);
  });

  test('keeps the link of a parked event whose stream was erased, and hands out the tombstone', async () => {
    const group = await GroupAtWork.create(open);
    await group.record('1', 'a');
    const consumer = group.consume();
    await consumer.subscription.nack(PARK, 'parked', ...(await consumer.take(1)));
    await expect.poll(() => group.parked().then(({ length }) => length)).toBe(1);
    await group.client.tombstoneStream(`${group.prefix}-1`);
    await consumer.take(2);
    expect(await group.parked()).toMatchObject([{ name: undefined, revision: 0n }]);
    await group.client.replayParkedMessagesToAll(group.name);
    const handed = ['a 0', '$streamDeleted 0'];
    if ((await nodeInfoAt(open.url)).name === 'EventStoreDB') handed.push('gone 0'); // KurrentDB leaves it out
    await expect.poll(() => group.parked()).toEqual([]);
    await consumer.take(handed.length);
    expect(consumer.handed).toEqual(handed);
  });

  test('drops its consumers when it is updated, and keeps its checkpoint', async () => {
    const checkpoints = { checkPointAfter: 100, checkPointLowerBound: 1, checkPointUpperBound: 2 };
    const group = await GroupAtWork.create(open, checkpoints);
    await group.record('1', 'a', 'b');
    const before = group.consume();
    const handed = await before.take(2);
    await before.subscription.ack(...handed);
    const checkpoint = async (): Promise<bigint> => {
      const { stats } = await group.client.getPersistentSubscriptionToAllInfo(group.name);
      return stats.lastCheckpointedEventPosition?.commit ?? 0n;
    };
    const lastHanded = handed[1]?.event?.position.commit ?? 0n;
    await expect.poll(checkpoint).toBeGreaterThanOrEqual(lastHanded);
    const settings = settingsWith({ ...checkpoints, maxRetryCount: 7 });
    await group.client.updatePersistentSubscriptionToAll(group.name, settings);
    await expect.poll(() => before.error).toBeInstanceOf(PersistentSubscriptionDroppedError);
    const info = await group.client.getPersistentSubscriptionToAllInfo(group.name);
    expect(info.settings.maxRetryCount).toBe(7);
    await group.record('2', 'c');
    const after = group.consume();
    await after.take(1);
    expect(after.handed).toEqual(['c 0']);
  });
});
