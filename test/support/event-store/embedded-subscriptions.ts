import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import { SqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import type { GroupConsumer, GroupEvent } from '../../../src/event-store/event-store.ts';
import { FakeClock } from '../fake-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export const SETTINGS = { prefixes: ['transaction-'], ackTimeoutMs: 5_000 };

/** Opens the embedded event store and its groups in a folder. A due time is noticed within `pollMs`. */
export function openIn(
  folder: string,
  clock: Clock,
  pollMs = 25,
): { store: SqliteEventStore; subscriptions: SqliteSubscriptions } {
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const subscriptions = new SqliteSubscriptions({
    path: join(folder, 'subscriptions.db'),
    store,
    clock,
    pollMs,
  });
  return { store, subscriptions };
}

/** Like `openIn`, but closed when the test is over. */
export function openForTest(...options: Parameters<typeof openIn>): ReturnType<typeof openIn> {
  const opened = openIn(...options);
  onTestFinished(async () => {
    await opened.subscriptions.close();
    await opened.store.close();
  });
  return opened;
}

/** Opens both for a test, with the group `g`; by default in a fresh folder, with a clock that stands still. */
export async function openGroup(
  options: {
    readonly folder?: string;
    readonly clock?: Clock;
    readonly pollMs?: number;
    readonly ackTimeoutMs?: number;
  } = {},
): Promise<ReturnType<typeof openIn>> {
  const { folder = temporaryFolder(), clock = new FakeClock(), pollMs, ackTimeoutMs } = options;
  const opened = openForTest(folder, clock, pollMs);
  await opened.subscriptions.ensureGroup('g', { ...SETTINGS, ...(ackTimeoutMs && { ackTimeoutMs }) });
  return opened;
}

/** A consumer of the group `g`. The test asks for each event. */
export function consume(
  subscriptions: SqliteSubscriptions,
  bufferSize = 10,
): AsyncGenerator<GroupEvent> & { end: () => void; consumer: GroupConsumer } {
  const end = new AbortController();
  const consumer = subscriptions.consume('g', { bufferSize, signal: end.signal });
  const events = consumer[Symbol.asyncIterator]() as AsyncGenerator<GroupEvent>;
  return Object.assign(events, { consumer, end: () => end.abort() });
}
