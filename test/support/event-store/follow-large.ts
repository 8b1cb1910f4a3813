import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
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
const store = engines.store();
const common = { store, clock: systemClock, log: silentLog, signal };

const directory = new Directory();
const live = new LiveDirectory({ ...common, directory });
const view = engines.view();
const running = [
  live.run(),
  runProjector({ ...common, view, coordination: engines.coordination(), holder: 'one' }),
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
await until(
  async () => directory.counts.unreadable === count && (await view.countParked()) === count,
  60_000,
);
const reasons = numbers.map((id) => directory.account(id)?.unreadable?.reason);
process.stdout.write(
  JSON.stringify({
    accounts: [...new Set(reasons)],
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
