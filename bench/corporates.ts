import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectTransaction } from '../projections/transactions.ts';
import { systemClock } from '../src/base/clock.ts';
import { sampleAccount } from '../src/customers/sample/sample-directory.ts';
import { transactionStream } from '../src/domain/transaction-events.ts';
import { loadConfig, openEngines } from '../src/engines/engines.ts';
import { storeIdentity } from '../src/event-store/store-identity.ts';
import type { TransactionsView } from '../src/pull/view/transactions-view.ts';
import { type Verdict, withMongodb, withPostgres } from './support/engines.ts';
import { PageClient, type PageRequest } from './support/page-client.ts';
import { median, reportBelow, reportRatio, runPairs } from './support/pairs.ts';
import { type Customer, provisionAccounts } from './support/provision.ts';
import { END_MS, sampleEvents } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';

const LINES = Number(process.env.BENCH_ROWS ?? 100_000);
const CORPORATES = 1_000;
/** An account whose records are all of the corporates asked for, and one of whose records a twentieth is. */
const ACCOUNTS = { dense: 7, sparse: 8 } as const;
const SPARSE_ONE_OF = 20;
const ASKED = [300, CORPORATES] as const;
const PAGES_A_RUN = 20;
const DAYS_31_MS = 31 * 86_400_000;
const OTHERS = { connections: 4, durationMs: 5_000 } as const;
const HEAVY_EVERY_MS = 1_000;
const MAX_TIMES = 5;

type Which = keyof typeof ACCOUNTS;

/** Measures pages of many corporates against pages of one, and what they cost another customer. */
export async function run(): Promise<Verdict> {
  const embedded = await inScratchFolder((folder) => measure('embedded', folder, {}));
  const postgresql = await withPostgres((env) =>
    inScratchFolder((folder) => measure('PostgreSQL', folder, env)),
  );
  const mongodb = await withMongodb((env, folder) => measure('MongoDB', folder, env));
  return embedded && postgresql !== false && mongodb !== false;
}

async function measure(
  engine: string,
  folder: string,
  engineEnv: Readonly<Record<string, string>>,
): Promise<boolean> {
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const engines = await openEngines(
    loadConfig({ ...engineEnv, FUEL_DATA_DIR: dataDir }, 'command'),
    systemClock,
  );
  const storeId = await storeIdentity(engines.store(), systemClock);
  const accounts = Object.values(ACCOUNTS).map((id) => ({
    ...sampleAccount(id),
    corporates: Array.from({ length: CORPORATES }, (_, n) => ({
      id: n,
      name: `Corporate ${n}`,
      group: null,
    })),
  }));
  const customers = await provisionAccounts(engines.store(), accounts);
  await fill(engines.view(), { storeId, head: await engines.store().head() });
  const isFree = engine !== 'embedded' || (await keepsLoopFree(engines.view()));
  await engines.close();
  const serve = await startServe({ dataDir, roles: ['api'], env: engineEnv });
  const client = new PageClient(serve.url, OTHERS.connections);
  try {
    const isQuick = await comparePages(engine, client, customers);
    const isFair = engine !== 'embedded' || (await delaysNobody(serve.url, client, customers));
    return isFree && isQuick && isFair;
  } finally {
    await client.close();
    await serve.stop();
  }
}

/** Fills the view with the sample's records, each of one of the two accounts. */
async function fill(
  view: TransactionsView,
  { storeId, head }: { readonly storeId: string; readonly head: number },
): Promise<void> {
  const { generation } = await view.reset(storeId, head);
  const accounts = Object.entries(ACCOUNTS) as [Which, number][];
  let n = 0;
  let changes = [];
  for (const { type, data } of sampleEvents({ lines: LINES, withPhotos: true })) {
    const id = data.transaction_id;
    n++;
    if (type === 'TransactionConfirmed' || type === 'ExternalTransactionRecorded') {
      const [which, accountId] = accounts[id % 2] as [Which, number];
      const mixed = Math.imul(id, 0x9e3779b1) >>> 8;
      const corporate = mixed % (which === 'dense' ? CORPORATES : CORPORATES * SPARSE_ONE_OF);
      const moved = { ...data, account_id: accountId, corporate_id: corporate, corporate_group_id: null };
      const change = projectTransaction(type, moved as typeof data, 0);
      changes.push({ position: n, stream: transactionStream(id), type, change });
    }
    if (changes.length < 2_000 && n < LINES) continue;
    await view.apply(changes, { generation, position: n < LINES ? 0 : head });
    changes = [];
  }
}

/** Corporates of the account, spread over all of them. */
function spread(count: number): number[] {
  return Array.from({ length: count }, (_, n) => (n * 7) % CORPORATES);
}

function request(which: Which, count: number, customers: readonly Customer[]): PageRequest {
  const key = customers.find(({ account }) => account.id === ACCOUNTS[which])?.key ?? '';
  const range = { from: new Date(END_MS - DAYS_31_MS).toISOString(), to: new Date(END_MS).toISOString() };
  return {
    path: `/transactions?${new URLSearchParams({ ...range, corporate_id: spread(count).join() })}`,
    key,
  };
}

/** Compares the pages of many corporates with those of one. The embedded store has no limit: others get a turn in between. */
async function comparePages(
  engine: string,
  client: PageClient,
  customers: readonly Customer[],
): Promise<boolean> {
  let isMet = true;
  const read = (which: Which, count: number) => async (): Promise<number> => {
    const asked = request(which, count, customers);
    const times: number[] = [];
    for (let n = 0; n < PAGES_A_RUN; n++) times.push(await timed(() => client.page(asked)));
    return median(times);
  };
  for (const which of ['dense', 'sparse'] as const) {
    for (const count of ASKED) {
      const pairs = await runPairs({ ours: read(which, count), baseline: read(which, 1) });
      const what = `${engine}, ${which}: a page of ${count} corporates, of one`;
      const ratio = engine === 'embedded' ? Number.POSITIVE_INFINITY : MAX_TIMES;
      isMet = reportRatio({ what, unit: 'ms', pairs, target: { ratio, is: 'at most' } }) && isMet;
    }
  }
  return isMet;
}

/** Measures how long a page of many corporates keeps the event loop of its process at a time. */
async function keepsLoopFree(view: TransactionsView): Promise<boolean> {
  const toMs = END_MS;
  const longest: number[] = [];
  for (let n = 0; n < PAGES_A_RUN; n++) {
    let isReading = true;
    let turnAtMs = performance.now();
    const reading = view
      .page({
        accountId: ACCOUNTS.sparse,
        fromMs: toMs - DAYS_31_MS,
        toMs,
        limit: 50,
        references: { corporate_id: spread(CORPORATES) },
        statuses: ['CONFIRMED', 'EXTERNAL'],
      })
      .finally(() => {
        isReading = false;
      });
    let longestMs = 0;
    while (isReading) {
      await new Promise(setImmediate);
      longestMs = Math.max(longestMs, performance.now() - turnAtMs);
      turnAtMs = performance.now();
    }
    await reading;
    longest.push(longestMs);
  }
  const what = `embedded: the longest that a page of ${CORPORATES} corporates keeps the loop`;
  return reportBelow({ what, unit: 'ms', value: median(longest), limit: 5 });
}

/** Compares another customer's pages while one asks for many corporates once a second, with those without. */
async function delaysNobody(
  url: string,
  client: PageClient,
  customers: readonly Customer[],
): Promise<boolean> {
  const { durationMs } = OTHERS;
  const others = async (): Promise<number> => {
    const { p99Ms } = await client.load({ durationMs, next: () => request('dense', 1, customers) });
    return p99Ms;
  };
  const beside = async (): Promise<number> => {
    const heavy = new PageClient(url, 1);
    const asking: Promise<unknown>[] = [];
    const ask = () => asking.push(heavy.page(request('sparse', CORPORATES, customers)));
    const timer = setInterval(ask, HEAVY_EVERY_MS);
    const p99Ms = await others().finally(() => clearInterval(timer));
    await Promise.all(asking);
    await heavy.close();
    return p99Ms;
  };
  const pairs = await runPairs({ ours: beside, baseline: others });
  return reportRatio({
    what: 'embedded: p99 of another key',
    unit: 'ms',
    pairs,
    target: { ratio: 2, is: 'at most' },
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganAtMs = performance.now();
  await work();
  return performance.now() - beganAtMs;
}
