import { systemClock } from '../../src/base/clock.ts';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';

/** Another process that follows the log: tells its parent when it saw each event, by the machine's clock. */
export interface Seen {
  readonly position: number;
  /** `process.hrtime.bigint()`, which all processes of a machine share. */
  readonly atNs: string;
}

const [path = ''] = process.argv.slice(2);
const stopping = new AbortController();
process.once('disconnect', () => stopping.abort());
const store = openSqliteEventStore({ path, clock: systemClock });
for await (const batch of store.subscribe({ prefixes: [], after: 0, signal: stopping.signal })) {
  const atNs = String(process.hrtime.bigint());
  for (const { position } of batch.events) process.send?.({ position, atNs } satisfies Seen);
  if (batch.events.length === 0 && batch.caughtUp) process.send?.({ position: 0, atNs } satisfies Seen);
}
await store.close();
