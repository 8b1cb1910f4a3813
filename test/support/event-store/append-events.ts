import { systemClock } from '../../../src/base/clock.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { record } from './store-events.ts';

// Run as a separate process: appends COUNT events to STREAM of the store at PATH, one after another.
const [path, stream, count] = process.argv.slice(2);
if (path === undefined || stream === undefined) throw new Error('usage: append-events.ts PATH STREAM COUNT');
const store = openSqliteEventStore({ path, clock: systemClock });
for (let index = 0; index < Number(count); index++) await record(store, stream, `${stream} ${index}`);
await store.close();
