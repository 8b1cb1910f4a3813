import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { eventStoreContract } from '../../contracts/event-store.contract.ts';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { KINDS } from '../../support/event-store/eventstoredb-double/kinds.ts';
import { groupNoise } from '../../support/event-store/eventstoredb-noise.ts';
import {
  eventStoreDbAt,
  eventStoreDbOnDouble,
  restartableNode,
} from '../../support/event-store/eventstoredb-under-test.ts';
import { ScopedStore } from '../../support/event-store/scoped-store.ts';
import { collect, record } from '../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const realUrl = inject('eventstoreUrl');

describe.each(KINDS)('on the double of %s', (kind) => {
  const node = { folder: '', running: undefined as EventStoreDbDouble | undefined };

  /** A node that starts records that it is the leader. */
  async function start(port?: number): Promise<EventStoreDbDouble> {
    const { folder } = node;
    node.running = await startEventStoreDbDouble({ kind, folder, ...(port === undefined ? {} : { port }) });
    return node.running;
  }

  eventStoreContract(
    async () => {
      node.folder = temporaryFolder();
      const { url } = await start();
      onTestFinished(async () => node.running?.stop());
      return eventStoreDbAt(url);
    },
    {
      noiseOf: async () => {
        const { url, port } = node.running ?? (await start());
        const ofGroup = await groupNoise(url);
        return async () => {
          await ofGroup();
          await node.running?.stop();
          await start(port);
        };
      },
    },
  );
});

describe.runIf(realUrl !== undefined)('on a real EventStoreDB', () => {
  const url = realUrl ?? '';
  eventStoreContract(() => ScopedStore.open(eventStoreDbAt(url)), {
    sharedLog: true,
    noiseOf: () => groupNoise(url),
  });
});

describe('a subscription that has caught up', () => {
  it('reports its position with an event that does not match, long before its next heartbeat', async () => {
    const { store, signal } = await restartableNode();
    const batches = store.subscribe({ prefixes: ['account-'], after: 0, signal })[Symbol.asyncIterator]();
    const first = await batches.next();
    expect(first.value).toMatchObject({ events: [], caughtUp: true });
    for (const stream of ['transaction-1', 'transaction-2', 'transaction-3']) {
      const position = await record(store, stream, 'a');
      const appendedAtMs = performance.now();
      const next = await batches.next();
      expect(next.value).toMatchObject({ events: [], position });
      expect(performance.now() - appendedAtMs).toBeLessThan(500);
    }
  });

  const urls = realUrl === undefined ? ['the double'] : ['the double', realUrl];
  it.each(urls)(
    'has reached every checkpoint that it reported, also while its position is among the records of groups, on %s',
    async (url) => {
      const store = url === realUrl ? eventStoreDbAt(url) : await eventStoreDbOnDouble();
      const ending = new AbortController();
      onTestFinished(async () => {
        ending.abort();
        await store.close();
      });
      const { signal } = ending;
      const scope = `${crypto.randomUUID().slice(0, 8)}.`;
      await record(store, `${scope}account-1`, 'a');
      const batches = store.subscribe({ prefixes: [scope], after: await store.head(), signal });
      const iterator = batches[Symbol.asyncIterator]();
      await iterator.next();
      const groups = store.subscriptions();
      await groups.ensureGroup(scope, { prefixes: [scope], ackTimeoutMs: 5_000 });
      const consumer = groups.consume(scope, { bufferSize: 10, signal });
      for await (const event of consumer) {
        await consumer.ack([event]);
        break;
      }
      for (let isHidden = false; !isHidden; ) {
        const { position = 0, checkpoint = 0 } = (await iterator.next()).value ?? {};
        expect(checkpoint).toBeLessThanOrEqual(await store.head());
        isHidden = position > (await store.head()); // the group's checkpoint follows
      }
    },
  );

  it('reports the position of an event that does not match and was recorded before the server listened', async () => {
    const { double, store, signal } = await restartableNode();
    await record(store, 'account-1', 'a');
    let unheard = 0;
    const nothing = async (): Promise<void> => undefined;
    double.beforeListening(nothing, async () => {
      unheard = await record(store, 'transaction-1', 'b');
    });
    const startMs = performance.now();
    for await (const { position } of store.subscribe({ prefixes: ['account-'], after: 0, signal })) {
      if (unheard > 0 && position >= unheard) break;
    }
    expect(performance.now() - startMs).toBeLessThan(6_000); // two reads of the log's end
  });

  it('yields once what matches and was recorded before the server listened', async () => {
    const { double, store, signal } = await restartableNode();
    await record(store, 'account-1', 'a');
    double.beforeListening(
      () => record(store, 'account-2', 'b'),
      () => record(store, 'account-3', 'c'),
    );
    const batches = store.subscribe({ prefixes: ['account-'], after: 0, signal })[Symbol.asyncIterator]();
    const { names } = await collect(batches, (all, { caughtUp }) => caughtUp && all.includes('c'));
    expect(names).toEqual(['a', 'b', 'c']);
  });

  it.each(KINDS)(
    'misses nothing that begins where the log ended when it was reported, on %s',
    async (kind) => {
      const { double, store, signal } = await restartableNode(kind);
      await record(store, 'account-1', 'a');
      const nothing = async (): Promise<void> => undefined;
      double.beforeListening(nothing, async () => {
        for (let turn = 0; turn < 5; turn++) await store.head(); // the report has arrived
        await record(store, 'account-2', 'b', 'c', 'd');
      });
      const subscription = store.subscribe({ prefixes: ['account-'], after: 0, batchSize: 1, signal });
      const { names } = await collect(subscription[Symbol.asyncIterator](), (all) => all.includes('d'));
      expect(names).toEqual(['a', 'b', 'c', 'd']);
    },
  );

  it('stores no position of a record that no stream shows, as those of a node that becomes the leader', async () => {
    const node = await restartableNode('KurrentDB');
    const { store, signal } = node;
    const end = await record(store, 'account-1', 'a');
    await node.restart();
    const batches = store.subscribe({ prefixes: [], after: 0, signal })[Symbol.asyncIterator]();
    const { position, batches: read } = await collect(batches, (_, { caughtUp }) => caughtUp);
    expect(position).toBeGreaterThan(end);
    expect(read.at(-1)?.checkpoint).toBe(end);
    await batches.next(); // a heartbeat: from now on a further record is looked at
    await node.double.becomeLeader();
    const idle = await collect(batches, (_, batch) => batch.position > position);
    await batches.return?.();
    expect(idle.batches.at(-1)?.checkpoint).toBe(end);
    expect(await store.head()).toBe(end);
  });
});
