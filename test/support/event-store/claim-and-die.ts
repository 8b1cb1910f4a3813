import { systemClock } from '../../../src/base/clock.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { SqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';

// Run as a separate process: takes one event of GROUP and is killed before it can acknowledge.
const [events, subscriptions, group] = process.argv.slice(2);
if (events === undefined || subscriptions === undefined || group === undefined) {
  throw new Error('usage: claim-and-die.ts EVENTS SUBSCRIPTIONS GROUP');
}
const store = openSqliteEventStore({ path: events, clock: systemClock });
const groups = new SqliteSubscriptions({ path: subscriptions, store, clock: systemClock });
const signal = new AbortController().signal;
for await (const _ of groups.consume(group, { bufferSize: 1, signal })) process.kill(process.pid, 'SIGKILL');
