import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { Random } from '../src/customers/sample/random.ts';
import { openSqliteEventStore } from '../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore, NewEvent } from '../src/event-store/event-store.ts';
import { newEvent } from '../src/event-store/new-event.ts';
import { buildData } from './support/build-data.ts';
import type { Seen } from './support/follower.ts';
import { median, percentile, print, reportBelow, show } from './support/pairs.ts';
import { processorTimeMs } from './support/process-figures.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';

const EVENTS = 300;
const IDLE_MS = 20_000;
const SETTLE_MS = 3_000;
const MAX_WAIT_MS = 10_000;
const FOLLOWER = join(import.meta.dirname, 'support/follower.ts');

/** How soon an event is seen in its own and in another process, and what an idle service costs. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const here = await seenHere(join(folder, 'here.db'));
    const elsewhere = await seenElsewhere(join(folder, 'elsewhere.db'));
    const idle = await idleShare(join(folder, 'data'));
    return [
      reportLatency('append to seen, same process', here, 5),
      reportLatency('append to seen, another process', elsewhere, 25),
      reportBelow({ what: 'idle fuel serve', value: idle * 100, unit: '% of a core', limit: 1 }),
    ].every((met) => met);
  });
}

function reportLatency(what: string, timesMs: readonly number[], limit: number): boolean {
  print(`  ${what}: p99 ${show(percentile(timesMs, 99))} ms, ${timesMs.length} events`);
  return reportBelow({ what: `${what}, median`, value: median(timesMs), unit: 'ms', limit });
}

async function seenHere(path: string): Promise<number[]> {
  const store = openSqliteEventStore({ path, clock: systemClock });
  const done = new AbortController();
  const seenAtMs: number[] = [];
  const following = (async () => {
    for await (const batch of store.subscribe({ prefixes: [], after: 0, signal: done.signal })) {
      const now = performance.now();
      for (const { position } of batch.events) seenAtMs[position] = now;
    }
  })();
  const appendedAtMs = await appendNowAndThen(store, () => performance.now());
  await sleep(100);
  done.abort();
  await following;
  await store.close();
  return [...appendedAtMs].map(([position, atMs]) => (seenAtMs[position] ?? Number.NaN) - atMs);
}

async function seenElsewhere(path: string): Promise<number[]> {
  const store = openSqliteEventStore({ path, clock: systemClock });
  const follower = fork(FOLLOWER, [path]);
  const seenAtNs = new Map<number, bigint>();
  follower.on('message', ({ position, atNs }: Seen) => {
    if (position > 0) seenAtNs.set(position, BigInt(atNs));
  });
  await once(follower, 'message'); // it has caught up with the empty log
  const appendedAtNs = await appendNowAndThen(store, () => process.hrtime.bigint());
  for (let wait = 0; seenAtNs.size < EVENTS && wait < MAX_WAIT_MS; wait += 10) await sleep(10);
  follower.disconnect();
  await once(follower, 'exit');
  await store.close();
  return [...appendedAtNs].map(([position, atNs]) => {
    const seen = seenAtNs.get(position);
    if (seen === undefined) throw new Error(`the other process did not see the event at ${position}`);
    return Number(seen - atNs) / 1e6;
  });
}

/** Appends one event after the other, each at a moment of its own; gives the time of each append by position. */
async function appendNowAndThen<T>(store: EventStore, now: () => T): Promise<Map<number, T>> {
  const random = new Random(7);
  const times = new Map<number, T>();
  for (let n = 0; n < EVENTS; n++) {
    await sleep(random.between([5, 40]));
    const atTime = now();
    const [result] = await store.append([{ stream: `account-${n}`, expected: 'none', events: [opened(n)] }]);
    if (result?.kind !== 'appended') throw new Error('an append was not recorded');
    times.set(result.position, atTime);
  }
  return times;
}

function opened(accountId: number): NewEvent {
  const event = { type: 'AccountOpened', data: { account_id: accountId, name: 'Bench' } } as const;
  return newEvent(event, { actor: 'bench', command: 'bench' }, Date.now());
}

/** The share of a core that a service with all roles uses while nothing happens. */
async function idleShare(dataDir: string): Promise<number> {
  mkdirSync(dataDir, { mode: 0o700 });
  await buildData(dataDir, 1_000);
  const serve = await startServe({ dataDir });
  try {
    await sleep(SETTLE_MS);
    const beforeMs = processorTimeMs(serve.pid);
    await sleep(IDLE_MS);
    return (processorTimeMs(serve.pid) - beforeMs) / IDLE_MS;
  } finally {
    await serve.stop();
  }
}
