import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { openSqliteDeliveryQueue } from '../../../src/engines/sqlite/queue/queue.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { FakeClock } from '../fake-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** An event store and a delivery log in a temporary folder, on a fake clock. */
export function openPushStores() {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const openQueue = (name = 'deliveries.db') => {
    const queue = openSqliteDeliveryQueue({ path: join(folder, name), clock });
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
