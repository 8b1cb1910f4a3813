import { runAccountsFollower } from '../../../src/accounts/rows/follower.ts';
import { ACCOUNTS } from '../../../src/accounts/rows/tables.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import { runProjector } from '../../../src/pull/view/projector.ts';
import { until } from '../waiting.ts';

// Run as a process with a small heap: every kind of reader and follower over COUNT transactions and accounts whose events
// are too long to be parsed. Prints the results.
const [, , counted = ''] = process.argv;
const count = Number(counted);
const numbers = Array.from({ length: count }, (_, index) => index + 1);
const engines = await openEngines(loadConfig(process.env, 'command'), systemClock);
const ending = new AbortController();
const { signal } = ending;
const [store, tables, coordination] = [engines.store(), engines.accounts(), engines.coordination()];
const common = { store, coordination, clock: systemClock, log: silentLog, signal };

const view = engines.view();
const running = [
  runAccountsFollower({ ...common, tables, holder: 'one' }),
  runProjector({ ...common, view, holder: 'one' }),
];
const groups = engines.subscriptions();
await groups.ensureGroup('g', { prefixes: ['transaction-'], ackTimeoutMs: 60_000 });
const consumer = groups.consume('g', { bufferSize: 400, signal });
let handed = 0;
for await (const event of consumer) {
  handed++;
  await consumer.ack([event]);
  if (handed === count) break;
}
const streams = numbers.map((number) => `transaction-${number}`);
const read = (await store.readStreams(streams)).flat();
const backwards: number[] = [];
for (let before: number | undefined; ; ) {
  const batch = await store.readBackwards({ prefixes: ['transaction-'], limit: 100, before });
  backwards.push(...batch.events.map(({ position }) => position));
  if (batch.atStart) break;
  before = batch.position;
}
const unreadable = async () => tables.get(ACCOUNTS, numbers, ['unreadable']);
await until(
  async () => (await unreadable()).length === count && (await view.countParked()) === count,
  60_000,
);
process.stdout.write(
  JSON.stringify({
    accounts: [...new Set((await unreadable()).map(({ unreadable: reason }) => reason))],
    parked: [...new Set((await view.parked()).map(({ reason }) => reason))],
    handed,
    read: read.filter(({ metadata }) => metadata instanceof Unreadable).length,
    backwards: backwards.length,
    peakMb: Math.round(process.resourceUsage().maxRSS / 1024),
  }),
);
ending.abort();
await Promise.all(running);
await engines.close();
