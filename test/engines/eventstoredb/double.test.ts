import {
  type AppendExpectedRevision,
  BACKWARDS,
  type Direction,
  END,
  type EventStoreDBClient,
  FORWARDS,
  jsonEvent,
  type ResolvedEvent,
  StreamDeletedError,
  streamNameFilter,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { expect, test } from 'vitest';
import { describeBoth, unique } from '../../support/event-store/eventstoredb-double/engines-under-test.ts';
import { nodeInfoAt } from '../../support/event-store/eventstoredb-under-test.ts';

type Name = 'a' | 'b' | 'c' | 'd';

/** Makes events whose ids are the same for the same name, within one stream. */
function eventsOf(stream: string, names: readonly Name[]): ReturnType<typeof jsonEvent>[] {
  const suffix = Buffer.from(stream).toString('hex').slice(-12);
  return names.map((name) => {
    const id = `00000000-0000-4000-800${name}-${suffix}`;
    return jsonEvent({ id, type: 'Named', data: { name } });
  });
}

/** Appends, and describes the outcome in words that are the same for both engines. */
async function append(
  client: EventStoreDBClient,
  stream: string,
  names: readonly Name[],
  options: { readonly expectedRevision?: AppendExpectedRevision } = {},
): Promise<string> {
  try {
    const result = await client.appendToStream(stream, eventsOf(stream, names), options);
    const [last] = await read(client.readStream(stream, { fromRevision: result.nextExpectedRevision }));
    const isPlace = last?.event?.position?.commit === result.position?.commit;
    return `at ${result.nextExpectedRevision}${isPlace ? '' : ', elsewhere'}`;
  } catch (error) {
    if (error instanceof WrongExpectedVersionError) return `conflict, last is ${error.actualVersion}`;
    if (error instanceof StreamDeletedError) return 'deleted';
    throw error;
  }
}

async function read(events: AsyncIterable<ResolvedEvent>): Promise<ResolvedEvent[]> {
  const found: ResolvedEvent[] = [];
  for await (const event of events) found.push(event);
  return found;
}

const nameOf = ({ event }: ResolvedEvent): unknown =>
  (event?.data as { readonly name?: unknown } | undefined)?.name ?? event?.type;
const placeOf = ({ event }: ResolvedEvent): bigint => event?.position?.commit ?? -1n;

describeBoth('appending', (client) => {
  test.each<[AppendExpectedRevision, Name[], string]>([
    ['any', ['a', 'b'], 'at 1'],
    ['any', ['b', 'c'], 'conflict, last is 1'],
    [0n, ['c'], 'conflict, last is 1'],
    [1n, ['c', 'd'], 'at 3'],
  ])(
    'after a and b, with expected revision %s, the result of appending %j is: %s',
    async (expectedRevision, names, outcome) => {
      const [engine, stream] = [client(), unique('account')];
      await engine.appendToStream(stream, eventsOf(stream, ['a', 'b']));
      expect(await append(engine, stream, names, { expectedRevision })).toBe(outcome);
    },
  );
});

describeBoth('reading', (client) => {
  test('the log is read forwards from an event, and backwards from before it', async () => {
    const [engine, stream] = [client(), unique('account')];
    await append(engine, stream, ['a', 'b', 'c', 'd']);
    const [, b, c] = await read(engine.readStream(stream));
    const names = async (
      from: ResolvedEvent | undefined,
      direction: Direction = FORWARDS,
    ): Promise<unknown[]> => {
      const fromPosition = from?.event?.position ?? END;
      return (await read(engine.readAll({ fromPosition, maxCount: 2, direction }))).map(nameOf);
    };
    expect(await names(b)).toEqual(['b', 'c']);
    expect(await names(c, BACKWARDS)).toEqual(['b', 'a']);
    expect(await names(undefined)).toEqual([]);
    const commit = c === undefined ? -1n : placeOf(c) + 1n;
    const between = engine.readAll({ fromPosition: { commit, prepare: commit }, maxCount: 1 });
    await expect(read(between)).rejects.toThrow('Unexpected ReadAllResult');
  });
});

describeBoth('a subscription to the log', (client) => {
  /** Collects what the subscription reports, in order. An event is reported by its name. */
  function follow(
    engine: EventStoreDBClient,
    { from, prefix }: { readonly from: ResolvedEvent | undefined; readonly prefix: string },
  ) {
    const said: string[] = [];
    const subscription = engine.subscribeToAll({
      fromPosition: from?.event?.position ?? END,
      filter: streamNameFilter({
        prefixes: [prefix],
        maxSearchWindow: 10,
        checkpointInterval: 2,
        checkpointReached: async (_, { commit }) => void said.push(`checkpoint ${commit}`),
      }),
    });
    subscription
      .on('confirmation', () => said.push('confirmed'))
      .on('caughtUp', () => said.push('caught up'));
    subscription.on('data', (event: ResolvedEvent) => said.push(String(nameOf(event))));
    return { said, end: () => subscription.unsubscribe() };
  }

  test('sends what matches, checkpoints in between, and that it has caught up', async () => {
    const [engine, prefix, other] = [client(), unique('account'), unique('transaction')];
    await append(engine, `${prefix}-1`, ['a']);
    await append(engine, `${prefix}-2`, ['b']);
    const others = Array.from({ length: 45 }, () => jsonEvent({ type: 'Other', data: {} }));
    await engine.appendToStream(other, others);
    await append(engine, `${prefix}-3`, ['c']);
    const [from] = await read(engine.readStream(`${prefix}-1`));
    const places = (await read(engine.readStream(other))).map(placeOf);
    const { said, end } = follow(engine, { from, prefix });
    await expect.poll(() => said.at(-1)).toBe('caught up');
    // Pages of ten; every second one reports where it began. KurrentDB's first one has the event of the position too,
    // and it reports the end.
    const isKurrent = (await nodeInfoAt(client.url)).name === 'KurrentDB';
    const [c] = await read(engine.readStream(`${prefix}-3`));
    expect(said).toEqual([
      'confirmed',
      'b',
      `checkpoint ${places[isKurrent ? 8 : 9]}`,
      `checkpoint ${places[isKurrent ? 28 : 29]}`,
      'c',
      ...(isKurrent && c !== undefined ? [`checkpoint ${placeOf(c)}`] : []),
      'caught up',
    ]);
    await append(engine, `${prefix}-4`, ['d']);
    await expect.poll(() => said.at(-1)).toBe('d');
    await end();
  });

  test('sends a checkpoint while it is live only after the interval', async () => {
    const [engine, prefix, other] = [client(), unique('account'), unique('transaction')];
    await append(engine, `${prefix}-1`, ['a']);
    const [from] = await read(engine.readStream(`${prefix}-1`));
    const { said, end } = follow(engine, { from, prefix });
    await expect.poll(() => said.at(-1)).toBe('caught up');
    const before = said.length;
    const others = (length: number): ReturnType<typeof jsonEvent>[] =>
      Array.from({ length }, () => jsonEvent({ type: 'Other', data: {} }));
    await engine.appendToStream(other, others(10));
    await append(engine, `${prefix}-2`, ['b']);
    await expect.poll(() => said.at(-1)).toBe('b');
    expect(said).toHaveLength(before + 1);
    await engine.appendToStream(other, others(20));
    await expect.poll(() => said.at(-1)).toMatch(/^checkpoint/);
    await end();
  });
});
