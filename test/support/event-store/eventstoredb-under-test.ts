import { EventStoreDBClient } from '@eventstore/db-client';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Log } from '../../../src/base/log.ts';
import type { NodeInfo } from '../../../src/engines/eventstoredb/driver/node-info.ts';
import { EventStoreDb } from '../../../src/engines/eventstoredb/event-store.ts';
import type { SubscriptionsUnderTest } from '../../contracts/persistent-subscriptions.contract.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../waiting.ts';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from './eventstoredb-double/eventstoredb-double.ts';
import type { Kind } from './eventstoredb-double/kinds.ts';
import { ScopedStore, scopedSubscriptions } from './scoped-store.ts';

export const silent: Log = pino({ level: 'silent' });

/** Opens the adapter on this node. */
export function eventStoreDbAt(url: string, log: Log = silent): EventStoreDb {
  return new EventStoreDb({ url, clock: systemClock, log });
}

/** Asks the node for its description. */
export async function nodeInfoAt(url: string): Promise<NodeInfo> {
  const store = eventStoreDbAt(url);
  return await store.describe().finally(() => store.close());
}

/** Opens the adapter on a separate double, which stops with the test. */
export async function eventStoreDbOnDouble(): Promise<EventStoreDb> {
  const double = await startEventStoreDbDouble();
  onTestFinished(() => double.stop());
  return eventStoreDbAt(double.url);
}

/**
 * Opens the adapter on a double that can be stopped and restarted on the same port and files. `signal` aborts when the
 * test is over.
 */
export async function restartableNode(kind: Kind = 'EventStoreDB'): Promise<{
  /** The node that was started last. */
  readonly double: EventStoreDbDouble;
  readonly store: EventStoreDb;
  readonly restart: () => Promise<void>;
  readonly signal: AbortSignal;
}> {
  const folder = temporaryFolder();
  let double = await startEventStoreDbDouble({ kind, folder });
  const { port, url } = double;
  const store = eventStoreDbAt(url);
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await store.close();
    await double.stop();
  });
  const restart = async (): Promise<void> => {
    await double.stop();
    double = await startEventStoreDbDouble({ kind, folder, port });
  };
  return {
    get double() {
      return double;
    },
    store,
    restart,
    signal: ending.signal,
  };
}

export async function groupsOnDouble(): Promise<SubscriptionsUnderTest> {
  const double = await startEventStoreDbDouble();
  onTestFinished(() => double.stop());
  const store = eventStoreDbAt(double.url);
  return { ...realTime(200), store, subscriptions: store.subscriptions(), settled: checkpointOf(double.url) };
}

/** Opens groups for one test on a shared node. They are deleted when the test is over. */
export async function groupsAt(url: string): Promise<SubscriptionsUnderTest> {
  const whole = eventStoreDbAt(url);
  const store = await ScopedStore.open(whole);
  const names = new Set<string>();
  onTestFinished(async () => {
    const client = EventStoreDBClient.connectionString(url);
    for (const name of names) await client.deletePersistentSubscriptionToAll(store.scope + name);
    await client.dispose();
  });
  const scoped = scopedSubscriptions(whole.subscriptions(), store);
  const checkpoint = checkpointOf(url);
  return {
    ...realTime(300),
    store,
    subscriptions: {
      ...scoped,
      ensureGroup: async (group, settings) => {
        await scoped.ensureGroup(group, settings);
        names.add(group);
      },
    },
    settled: (group) => checkpoint(store.scope + group),
  };
}

function realTime(unitMs: number): Pick<SubscriptionsUnderTest, 'pass' | 'unitMs' | 'quietMs' | 'lagMs'> {
  return {
    pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    unitMs,
    quietMs: 100,
    lagMs: 5_000,
  };
}

function checkpointOf(url: string): (group: string) => Promise<void> {
  return async (group) => {
    const client = EventStoreDBClient.connectionString(url);
    await until(async () => {
      const { stats } = await client.getPersistentSubscriptionToAllInfo(group);
      const { lastCheckpointedEventPosition: covered, lastKnownEventPosition: handed } = stats;
      return covered !== undefined && covered.commit >= (handed?.commit ?? 0n);
    });
    await client.dispose();
  };
}
