import type { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventStoreDBClient } from '@eventstore/db-client';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { EventStoreDbBatchAppend } from '../../../../src/engines/eventstoredb/driver/batch-append.ts';
import type { EventStoreDb } from '../../../../src/engines/eventstoredb/event-store.ts';
import { storeIdentity } from '../../../../src/event-store/store-identity.ts';
import { restartableNode } from '../../../support/event-store/eventstoredb-under-test.ts';
import { named, nameOf, record } from '../../../support/event-store/store-events.ts';

/** How much faster than real time the clock runs that limits the retries of an append. */
const FASTER = 10;

/** Returns three appends of two events each. They expect no stream, anything, and a revision. */
async function appends(store: EventStoreDb) {
  await record(store, 'account-2', 'first');
  await record(store, 'account-3', 'first');
  return (['none', 'any', 0] as const).map((expected, index) => ({
    stream: `account-${index + 1}`,
    expected,
    events: [named('a'), named('b')],
  }));
}

describe('an append', () => {
  test.each(['not at all', 'timed out', 'without position', 'conflict', 'busy'] as const)(
    'that is answered %s is recorded once, and its position is found',
    async (fault) => {
      const { double, store } = await restartableNode();
      const tried = await appends(store);
      if (fault === 'not at all') double.leaveUnanswered(tried.length);
      else double.failAppends(fault, fault, fault);
      const results = await store.append(tried);
      const streams = await store.readStreams(tried.map(({ stream }) => stream));
      expect(streams.map((events) => events.map(nameOf))).toEqual([
        ['a', 'b'],
        ['first', 'a', 'b'],
        ['first', 'a', 'b'],
      ]);
      const lasts = streams.map((events) => events.at(-1));
      expect(results).toEqual(
        lasts.map((last) => ({ kind: 'appended', revision: last?.revision, position: last?.position })),
      );
    },
  );

  test('that conflicts with what a cluster has not committed yet is answered once reads show that', async () => {
    const { double, store } = await restartableNode();
    for (const events of [[named('late')], [named('late'), named('later')]]) {
      await record(store, 'account-1', 'theirs');
      const commit = double.withhold('account-1');
      let isAnswered = false;
      const appending = store.append([{ stream: 'account-1', expected: 'none', events }]).finally(() => {
        isAnswered = true;
      });
      await new Promise((resolve) => setTimeout(resolve, 250));
      expect(isAnswered).toBe(false);
      commit();
      expect(await appending).toMatchObject([{ kind: 'conflict' }]);
      expect((await store.readStream('account-1')).map(nameOf)).not.toContain('late');
    }
  });

  test('of the name of the store gives the name that another process was faster with, as soon as reads show it', async () => {
    const { double, store } = await restartableNode();
    const theirs = await storeIdentity(store, systemClock);
    const commit = double.withhold('operations');
    const ours = storeIdentity(store, systemClock);
    setTimeout(commit, 100);
    expect(await ours).toBe(theirs);
  });

  test('waits for earlier appends to the same stream, also while the node is unavailable', async () => {
    const { double, store, restart } = await restartableNode();
    await record(store, 'account-1', 'first');
    await double.stop();
    const names = Array.from({ length: 8 }, (_, n) => `e${n}`);
    const appending = store.append(
      names.map((name, n) => ({ stream: 'account-1', expected: n, events: [named(name)] })),
    );
    await restart();
    expect((await appending).map(({ kind }) => kind)).toEqual(names.map(() => 'appended'));
    expect((await store.readStream('account-1')).map(nameOf)).toEqual(['first', ...names]);
  });

  test('without events is refused', async () => {
    const { store } = await restartableNode();
    const append = { stream: 'account-1', expected: 'any', events: [] } as const;
    await expect(store.append([append])).rejects.toThrow('at least one event');
  });

  test('rejects with STORE_UNAVAILABLE once no node has answered for ten seconds', async () => {
    const { double, store } = await restartableNode();
    await record(store, 'account-1', 'first');
    await double.stop();
    const now = performance.now.bind(performance);
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => FASTER * now());
    onTestFinished(() => spy.mockRestore());
    const startMs = performance.now();
    const append = { stream: 'account-1', expected: 0, events: [named('b')] } as const;
    await expect(store.append([append])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const waitedMs = performance.now() - startMs;
    expect(waitedMs).toBeGreaterThan(8_900); // a further try would end after the ten seconds
    expect(waitedMs).toBeLessThan(25_000); // the pauses between tries run in real time
  });
});

describe('the call that appends go through', () => {
  const NEVER = new AbortController().signal;
  const event = () => {
    const json = '{}';
    return { id: crypto.randomUUID(), type: 'Named', data: Buffer.from(json), metadata: json };
  };
  const to = (stream: string) => ({ stream, expected: 'any', events: [event()] }) as const;

  async function client(): Promise<{ client: EventStoreDBClient; store: EventStoreDb }> {
    const { double, store } = await restartableNode();
    const opened = EventStoreDBClient.connectionString(double.url);
    onTestFinished(() => opened.dispose());
    return { client: opened, store };
  }

  test('does not send an append that was cancelled before', async () => {
    const { client: driver, store } = await client();
    const batch = new EventStoreDbBatchAppend(driver);
    const givenUp = AbortSignal.abort(new Error('cancelled'));
    await expect(batch.append(to('account-1'), givenUp)).rejects.toThrow('cancelled');
    expect(await batch.append(to('account-2'), NEVER)).toMatchObject({ kind: 'recorded' });
    expect(await store.readStreams(['account-1', 'account-2'])).toMatchObject([[], [{ type: 'Named' }]]);
  });

  test('is reopened after it could not be opened, and after the server ended it', async () => {
    const { client: driver, store } = await client();
    const opened: EventEmitter[] = [];
    let failures = 1;
    const creator = Reflect.get(driver, 'GRPCStreamCreator').bind(driver);
    const opening = (...args: unknown[]) => {
      const open = creator(...args);
      return async () => {
        if (failures-- > 0) throw new Error('Failed to discover after 1 attempts.');
        const call = await open();
        opened.push(call);
        return call;
      };
    };
    const batch = new EventStoreDbBatchAppend(Object.assign(driver, { GRPCStreamCreator: opening }));
    await expect(batch.append(to('account-1'), NEVER)).rejects.toThrow('Failed to discover');
    expect(await batch.append(to('account-1'), NEVER)).toMatchObject({ kind: 'recorded' });
    const waiting = expect(batch.append(to('account-1'), NEVER)).rejects.toThrow(
      'the server ended the call of the appends',
    );
    await nextTurn();
    opened[0]?.emit('end');
    await waiting;
    expect(await batch.append(to('account-2'), NEVER)).toMatchObject({ kind: 'recorded' });
    expect(opened).toHaveLength(2);
    expect(await store.readStream('account-2')).toHaveLength(1);
  });
});
