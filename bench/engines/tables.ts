import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { Random } from '../../src/customers/sample/random.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { claimFrom, claimOptions, delivered, newDelivery } from '../../test/support/deliveries/deliveries.ts';
import { type Verdict, withMongodb, withPostgres } from '../support/engines.ts';
import { fillView } from '../support/fill-view.ts';
import { importSample } from '../support/import-sample.ts';
import { type Pairs, print, reportRatio, runPairs } from '../support/pairs.ts';
import { projectAll } from '../support/project-all.ts';
import { sampleFile } from '../support/sample-events.ts';
import { type PreparedPage, preparePages, readOurs } from './page.ts';

const ROWS = Number(process.env.BENCH_ROWS ?? 200_000);
const LINES = 40_000;
const DELIVERIES = 5_000;
const AT_ONCE = 100;
const PAIRS = 5;
const PAGES = { 1: 200, 16: 800 } as const;
/** Figures of two engines beside each other: neither is what the other is measured by. */
const NO_LIMIT = { ratio: Number.POSITIVE_INFINITY, is: 'at most' } as const;

/** Measures page, rebuild and deliveries on PostgreSQL beside MongoDB, each with embedded events, in turn. */
export async function run(): Promise<Verdict> {
  return withMongodb((mongodb, folder) =>
    withPostgres(async (postgresql) => {
      const open = (name: string, env: object): Promise<Engines> =>
        openEngines(loadConfig({ ...env, FUEL_DATA_DIR: join(folder, name) }, 'command'), systemClock);
      const sides = { ours: await open('postgresql', postgresql), baseline: await open('mongodb', mongodb) };
      const both = async <T>(work: (engines: Engines) => Promise<T>): Promise<Pairs<T>> =>
        runPairs({ pairs: PAIRS, ours: () => work(sides.ours), baseline: () => work(sides.baseline) });
      try {
        await comparePages(sides);
        for (const engines of Object.values(sides)) await recordSample(engines);
        reportRatio({ what: 'rebuild', unit: 'events/s', pairs: await both(rebuild), target: NO_LIMIT });
        let first = 0;
        const deliver = (engines: Engines): Promise<number> => {
          first += DELIVERIES;
          return passDeliveries(engines, first);
        };
        reportRatio({ what: 'deliveries', unit: 'a second', pairs: await both(deliver), target: NO_LIMIT });
        return true;
      } finally {
        for (const engines of Object.values(sides)) await engines.close();
      }
    }),
  );
}

async function comparePages(sides: Readonly<Record<'ours' | 'baseline', Engines>>): Promise<void> {
  for (const engines of Object.values(sides)) await fillView(engines.view(), ROWS);
  const pages = await preparePages(sides.ours.view());
  print(`  ${pages.length} full pages, ${ROWS.toLocaleString('en')} rows`);
  for (const inFlight of [1, 16] as const) {
    let seed = 0;
    const read = (engines: Engines) => () => msPerPage(engines, { pages, inFlight, seed: seed++ >> 1 });
    const pairs = await runPairs({ ours: read(sides.ours), baseline: read(sides.baseline) });
    reportRatio({ what: `page, ${inFlight} in flight`, unit: 'ms a page', pairs, target: NO_LIMIT });
  }
}

interface Draw {
  readonly pages: readonly PreparedPage[];
  readonly inFlight: keyof typeof PAGES;
  readonly seed: number;
}

async function msPerPage(engines: Engines, { pages, inFlight, seed }: Draw): Promise<number> {
  const random = new Random(seed);
  const drawn = Array.from({ length: PAGES[inFlight] }, () => random.pick(pages as [PreparedPage]));
  const rest = drawn.values();
  const read = readOurs(engines.view());
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (const page of rest) await read(page);
    }),
  );
  return (performance.now() - startedAtMs) / drawn.length;
}

async function recordSample(engines: Engines): Promise<void> {
  const store = engines.store();
  await storeIdentity(store, systemClock);
  await importSample({ store, input: sampleFile({ lines: LINES }), lines: LINES });
}

async function rebuild(engines: Engines): Promise<number> {
  const [store, view] = [engines.store(), engines.view()];
  const startedAtMs = performance.now();
  await view.reset(await storeIdentity(store, systemClock), await store.head());
  await projectAll({ store, view, coordination: engines.coordination(), lookEveryMs: 20 });
  return (LINES * 1_000) / (performance.now() - startedAtMs);
}

/** Stores them, claims them and reports them as delivered, as a dispatcher does, but sends nothing. */
async function passDeliveries(engines: Engines, first: number): Promise<number> {
  const queue = engines.queue();
  const startedAtMs = performance.now();
  for (let from = first; from < first + DELIVERIES; from += AT_ONCE)
    await queue.enqueue(Array.from({ length: AT_ONCE }, (_, n) => newDelivery(from + n)));
  for (;;) {
    const claims = await claimFrom(queue, claimOptions(systemClock.now(), { limit: AT_ONCE }));
    if (claims.length === 0) break;
    await queue.report(claims.map((claim) => delivered(claim, systemClock.now())));
  }
  return (DELIVERIES * 1_000) / (performance.now() - startedAtMs);
}
