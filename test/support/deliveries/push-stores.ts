import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { queueInMemory } from '../deliveries/open-queue.ts';
import { MemoryLog, openMemoryEventStore } from '../engines/memory-log.ts';
import { MemoryStores } from '../engines/memory-stores.ts';
import { FakeClock } from '../fake-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';

type OpenStore<Store> = (clock: FakeClock, folder: string) => Store;
export type PushStores<Store extends EventStore> = ReturnType<typeof openPushStoresWith<Store>>;

const AUTHOR = { actor: 'test', command: 'test' };

/** Opens the store in a file, for tests of files and of the subscriptions next to it. */
export const onFile: OpenStore<SqliteEventStore> = (clock, folder) =>
  openSqliteEventStore({ path: join(folder, 'events.db'), clock });

const inMemory: OpenStore<EventStore> = (clock) => openMemoryEventStore(new MemoryLog(), clock);

/** Opens an event store and delivery logs in memory, on a fake clock. */
export function openPushStores() {
  return openPushStoresWith(inMemory);
}

/** Like `openPushStores`, but with another event store. */
export function openPushStoresWith<Store extends EventStore>(openStore: OpenStore<Store>) {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const store = openStore(clock, folder);
  const logs = new Map<string, MemoryStores>();
  const openQueue = (name = 'the log') => {
    const log = logs.get(name) ?? new MemoryStores();
    logs.set(name, log);
    const queue = queueInMemory(log, clock);
    onTestFinished(() => queue.close());
    return queue;
  };
  onTestFinished(() => store.close());
  const append = async (stream: string, ...events: { readonly type: string; readonly data: unknown }[]) => {
    const recorded = events.map((event) => newEvent(event as DomainEvent, AUTHOR, clock.now()));
    const [result] = await store.append([{ stream, expected: 'any', events: recorded }]);
    if (result?.kind !== 'appended') throw new Error(`not appended: ${JSON.stringify(result)}`);
    return result.position;
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
