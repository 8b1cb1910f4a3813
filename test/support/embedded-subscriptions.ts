import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { openSqliteEventStore, type SqliteEventStore } from '../../src/event-store/sqlite.ts';
import {
  openSqliteSubscriptions,
  type SqliteSubscriptions,
} from '../../src/event-store/sqlite-subscriptions.ts';

/** Opens the embedded event store and its groups in a folder; a due time is noticed within `lookAtClockMs`. */
export function openIn(
  folder: string,
  clock: Clock,
  lookAtClockMs = 25,
): { store: SqliteEventStore; subscriptions: SqliteSubscriptions } {
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const subscriptions = openSqliteSubscriptions({
    path: join(folder, 'subscriptions.db'),
    store,
    clock,
    lookAtClockMs,
  });
  return { store, subscriptions };
}

/** As `openIn`, closed when the test is over. */
export function openForTest(...options: Parameters<typeof openIn>): ReturnType<typeof openIn> {
  const opened = openIn(...options);
  onTestFinished(async () => {
    await opened.subscriptions.close();
    await opened.store.close();
  });
  return opened;
}
