import {
  type AllStreamResolvedEvent,
  type EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  type ResolvedEvent,
  START,
  StreamNotFoundError,
  streamNameFilter,
} from '@eventstore/db-client';
import { expect, onTestFinished, test } from 'vitest';
import {
  describeBoth,
  type OpenClient,
  unique,
} from '../../support/event-store/eventstoredb-double/engines-under-test.ts';
import { nodeInfoAt } from '../../support/event-store/eventstoredb-under-test.ts';

/** What a server does with the records that it hides is the reason for decision 0021. */

type Place = { readonly commit: bigint; readonly prepare: bigint };

/** Streams of one test: those that a filter is for, and others. */
class Streams {
  readonly client: EventStoreDBClient;
  readonly wanted = unique('transaction');
  readonly other = unique('account');

  constructor(open: OpenClient) {
    this.client = open();
  }

  get filter() {
    return streamNameFilter({ prefixes: [this.wanted] });
  }

  async record(...names: string[]): Promise<void> {
    await this.#append(this.wanted, names);
  }

  async recordOther(...names: string[]): Promise<void> {
    await this.#append(this.other, names);
  }

  async #append(stream: string, names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.client.appendToStream(`${stream}-${name}`, jsonEvent({ type: 'Named', data: { name } }));
    }
  }
}

/** A group that writes a checkpoint every tenth of a second. */
class CheckpointedGroup {
  readonly name = unique('group');
  readonly checkpoints = `$persistentsubscription-$all::${this.name}-checkpoint`;
  readonly #streams: Streams;
  readonly #settings = persistentSubscriptionToAllSettingsFromDefaults({
    startFrom: START,
    checkPointAfter: 100,
    checkPointLowerBound: 1,
    checkPointUpperBound: 1_000,
  });

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  async create({ isFiltered }: { readonly isFiltered: boolean }): Promise<void> {
    const { client, filter } = this.#streams;
    const options = isFiltered ? { filter } : {};
    await client.createPersistentSubscriptionToAll(this.name, this.#settings, options);
  }

  /** As after a restart of the node: the group continues from its checkpoint. */
  async reload(): Promise<void> {
    await this.#streams.client.updatePersistentSubscriptionToAll(this.name, this.#settings);
  }

  /** Acknowledges all events up to the one of this name; returns the names of those wanted. */
  async takeUntil(last: string): Promise<string[]> {
    const names: string[] = [];
    const consumer = this.#streams.client.subscribeToPersistentSubscriptionToAll(this.name, {
      bufferSize: 50,
    });
    consumer.on('data', (event) => {
      if (event.event?.streamId.startsWith(this.#streams.wanted) === true) names.push(nameOf(event));
      void consumer.ack(event);
    });
    await expect.poll(() => names.at(-1), { timeout: 10_000 }).toBe(last);
    await this.#hasAcknowledged();
    await consumer.unsubscribe();
    return names;
  }

  /** An acknowledgement sent right before the consumer ends may not arrive. */
  async #hasAcknowledged(): Promise<void> {
    const inFlight = async () => {
      const { stats } = await this.#streams.client.getPersistentSubscriptionToAllInfo(this.name);
      return stats.totalInFlightMessages;
    };
    await expect.poll(inFlight, { timeout: 10_000 }).toBe(0);
  }

  /** Waits until the group's checkpoint is at this event, or after it. */
  async hasPassed(stream: string): Promise<Place> {
    const { client } = this.#streams;
    const passed = await lastOf(client, stream);
    await expect
      .poll(async () => positionIn(await lastOf(client, this.checkpoints)), { timeout: 10_000 })
      .toBeGreaterThanOrEqual(passed?.position?.commit ?? 0n);
    return (await lastOf(client, this.checkpoints))?.position as Place;
  }
}

const nameOf = ({ event }: Pick<ResolvedEvent, 'event'>): string =>
  String((event?.data as { name?: unknown } | undefined)?.name);

function positionIn(event: ResolvedEvent['event']): bigint {
  return BigInt(/^C:(\d+)\//.exec(String(event?.data))?.[1] ?? -1);
}

async function lastOf(client: EventStoreDBClient, stream: string): Promise<ResolvedEvent['event']> {
  let last: ResolvedEvent['event'];
  try {
    for await (const { event } of client.readStream(stream)) last = event;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return last;
}

describeBoth('a record that reads of the log do not show', (open) => {
  /** The position of a checkpoint that a group has just written. */
  async function hiddenPlace(streams: Streams): Promise<Place> {
    const group = new CheckpointedGroup(streams);
    await group.create({ isFiltered: true });
    await streams.record('before');
    await group.takeUntil('before');
    return group.hasPassed(`${streams.wanted}-before`);
  }

  test('takes a position in the log', async () => {
    const streams = new Streams(open);
    const fromPosition = await hiddenPlace(streams);
    await streams.record('after');
    const shown: string[] = [];
    for await (const { event } of streams.client.readAll({ fromPosition, maxCount: 100 })) {
      expect(event?.position?.commit).toBeGreaterThan(fromPosition.commit);
      shown.push(event?.streamId ?? '');
    }
    expect(shown).toContain(`${streams.wanted}-after`);
  });

  test('makes a subscription after its position leave out the next event', async () => {
    const streams = new Streams(open);
    const fromPosition = await hiddenPlace(streams);
    await streams.record('next', 'second');
    const { client } = streams;
    const placeOf = ({ event }: AllStreamResolvedEvent) => event?.position?.commit;
    const shown: unknown[] = [];
    for await (const event of client.readAll({ fromPosition, maxCount: 2 })) shown.push(placeOf(event));
    const subscription = client.subscribeToAll({ fromPosition });
    const handed: unknown[] = [];
    subscription.on('data', (event: AllStreamResolvedEvent) => handed.push(placeOf(event)));
    onTestFinished(() => subscription.unsubscribe());
    await expect.poll(() => handed.length).toBeGreaterThan(0);
    const { name } = await nodeInfoAt(open.url);
    expect(handed[0]).toBe(shown[name === 'KurrentDB' ? 0 : 1]); // which reads on after the position itself
  });
});

describeBoth('a group that is loaded again', (open) => {
  test('with a filter, loses an event after one that the filter left out', async () => {
    const streams = new Streams(open);
    const group = new CheckpointedGroup(streams);
    await group.create({ isFiltered: true });
    await streams.record('a');
    await group.takeUntil('a');
    await streams.recordOther('x');
    await group.hasPassed(`${streams.other}-x`);
    await streams.record('b');
    await group.reload();
    await streams.record('c', 'd');
    expect(await group.takeUntil('d')).not.toContain('b');
  });

  test('with a filter, loses events that wait for a client when another event is left out', async () => {
    const streams = new Streams(open);
    const group = new CheckpointedGroup(streams);
    await group.create({ isFiltered: true });
    await streams.record('a');
    await group.takeUntil('a');
    await streams.record('b', 'c');
    await streams.recordOther('x');
    await group.hasPassed(`${streams.other}-x`);
    await group.reload();
    await streams.record('d', 'e');
    const handed = await group.takeUntil('e');
    expect(handed).not.toContain('b');
    expect(handed).not.toContain('c');
  });

  test('without a filter, loses nothing', async () => {
    const streams = new Streams(open);
    const group = new CheckpointedGroup(streams);
    await group.create({ isFiltered: false });
    await streams.record('a');
    await streams.recordOther('x');
    await group.takeUntil('a');
    await group.hasPassed(`${streams.wanted}-a`);
    await streams.record('b');
    await streams.recordOther('y');
    await streams.record('c');
    await group.reload();
    await streams.record('d');
    expect((await group.takeUntil('d')).filter((name) => name !== 'a')).toEqual(['b', 'c', 'd']);
  });
});
