import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { MemoryLog, openMemoryEventStore } from '../../../src/engines/memory/event-store.ts';
import { MemoryDeliveries } from '../../../src/engines/memory/queue/deliveries.ts';
import { openMemoryQueue } from '../../../src/engines/memory/queue/queue.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { FakeClock } from '../fake-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export type OpenStore<Store> = (clock: FakeClock, folder: string) => Store;
export type PushStores<Store extends EventStore> = ReturnType<typeof openPushStoresWith<Store>>;

const AUTHOR = { actor: 'test', command: 'test' };

/** The store in a file: for tests of what a file does, and of the subscriptions beside it. */
export const onFile: OpenStore<SqliteEventStore> = (clock, folder) =>
  openSqliteEventStore({ path: join(folder, 'events.db'), clock });

const inMemory: OpenStore<EventStore> = (clock) => openMemoryEventStore(new MemoryLog(), clock);

/** An event store and delivery logs in memory, on a fake clock. */
export function openPushStores() {
  return openPushStoresWith(inMemory);
}

/** As `openPushStores`, with another event store. */
export function openPushStoresWith<Store extends EventStore>(openStore: OpenStore<Store>) {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const store = openStore(clock, folder);
  const logs = new Map<string, MemoryDeliveries>();
  const openQueue = (name = 'the log') => {
    const log = logs.get(name) ?? new MemoryDeliveries(clock);
    logs.set(name, log);
    const queue = openMemoryQueue(log, clock);
    onTestFinished(() => queue.close());
    return queue;
  };
  onTestFinished(() => store.close());
  const append = async (stream: string, ...events: { readonly type: string; readonly data: unknown }[]) => {
    const recorded = events.map((event) => newEvent(event as DomainEvent, AUTHOR, clock.now()));
    const [result] = await store.append([{ stream, expected: 'any', events: recorded }]);
    if (result?.kind !== 'appended') throw new Error(`not appended: ${JSON.stringify(result)}`);
  };
  return {
    clock,
    folder,
    store,
    openQueue,
    author: AUTHOR,
    append,
    account: (...events: AccountEvent[]) => append('account-7', ...events),
  };
}
