import { type Collection, type Document, MongoClient } from 'mongodb';
import { systemClock } from '../../src/base/clock.ts';
import { Random } from '../../src/customers/sample/random.ts';
import { sampleAccount } from '../../src/customers/sample/sample-directory.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { pageSearches } from '../../src/engines/mongodb/view/page.ts';
import { createPresigner, type Presigner } from '../../src/pull/images/presign.ts';
import { readParameters } from '../../src/pull/parameters.ts';
import { pageBody } from '../../src/pull/transactions.ts';
import type { PageQuery, TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { type Verdict, withMongodb } from '../support/engines.ts';
import { fillView } from '../support/fill-view.ts';
import { drawPages, PAGE_RECORDS } from '../support/page-draws.ts';
import { print, reportRatio, runPairs } from '../support/pairs.ts';
import { ACCOUNTS } from '../support/sample-events.ts';

const ROWS = Number(process.env.BENCH_ROWS ?? 2_000_000);
const DRAWS = 200;
const VALID_FOR_SECONDS = 3_600;
/** Pages of one run. */
const PAGES = { 1: 200, 16: 800 } as const;
/** Of the time of a page, by how many are in flight. */
const TARGETS = { 1: 1.3, 16: 1.25 } as const;

interface PreparedPage {
  readonly query: PageQuery;
  /** The keys of its 100 photos. */
  readonly photos: readonly string[];
}

/** One page, start to end. */
type ReadPage = (page: PreparedPage) => Promise<void>;

/** A page of 50 with 100 image URLs, against the bare query with as many URLs signed. */
export async function run(): Promise<Verdict> {
  return withMongodb(async (env) => {
    const engines = await openEngines(loadConfig({ ...env }, 'command'), systemClock);
    const mongo = new MongoClient(env.MONGODB_URL);
    try {
      const view = engines.view();
      const generation = await fillView(view, ROWS);
      const pages = await preparePages(view);
      print(`  ${pages.length} full pages from ${DRAWS} draws, ${ROWS.toLocaleString('en')} rows`);
      const rows = mongo.db(env.MONGODB_DATABASE).collection(`transactions_${generation}`);
      const sides = { ours: readOurs(view), baseline: readBare(rows) };
      const one = await compare(pages, sides, 1);
      const many = await compare(pages, sides, 16);
      return one && many;
    } finally {
      await mongo.close();
      await engines.close();
    }
  });
}

async function compare(
  pages: readonly PreparedPage[],
  sides: { readonly ours: ReadPage; readonly baseline: ReadPage },
  inFlight: keyof typeof PAGES,
): Promise<boolean> {
  let seed = 0;
  const msPerPage = async (read: ReadPage): Promise<number> => {
    const random = new Random(seed++ >> 1);
    const drawn = Array.from({ length: PAGES[inFlight] }, () => random.pick(pages as [PreparedPage]));
    const rest = drawn.values();
    const worker = async (): Promise<void> => {
      for (const page of rest) await read(page);
    };
    const startedAtMs = performance.now();
    await Promise.all(Array.from({ length: inFlight }, worker));
    return (performance.now() - startedAtMs) / drawn.length;
  };
  const pairs = await runPairs({
    baseline: () => msPerPage(sides.baseline),
    ours: () => msPerPage(sides.ours),
  });
  const what = `page from MongoDB, ${inFlight} in flight`;
  return reportRatio({ what, unit: 'ms a page', pairs, target: { ratio: TARGETS[inFlight], is: 'at most' } });
}

function readOurs(view: TransactionsView): ReadPage {
  const presigner = photoStore();
  return async ({ query }) => {
    const page = await view.page(query);
    const { parts, expiresAtMs } = presigner.at(systemClock.now(), VALID_FOR_SECONDS);
    const terms = { mobileNumber: true, urls: parts, expiresAt: formatDateTime(expiresAtMs) };
    const body = pageBody(page.rows, terms, '{}');
    if (page.rows.length !== PAGE_RECORDS || body.length < PAGE_RECORDS) throw new Error('not a full page');
  };
}

function readBare(rows: Collection): ReadPage {
  const presigner = photoStore();
  return async ({ query, photos }) => {
    const [search, ...others] = pageSearches(query);
    if (search === undefined || others.length > 0) throw new Error('a page of the draws is one query');
    const limit = PAGE_RECORDS + 1;
    const options = { hint: search.index, limit, batchSize: limit + 1, raw: true };
    const found = await rows
      .find(search.filter as Document, options)
      .sort({ place: -1 })
      .toArray();
    const { presign } = presigner.at(systemClock.now(), VALID_FOR_SECONDS);
    const urls = photos.map(presign);
    if (found.length < PAGE_RECORDS || urls.length !== 2 * PAGE_RECORDS) throw new Error('not a full page');
  };
}

/** Walks to each draw's depth; a list that ends before ends the walk at its last full page. */
async function preparePages(view: TransactionsView): Promise<readonly PreparedPage[]> {
  const [first, ...rest] = ACCOUNTS.map((id) => ({ account: sampleAccount(id), key: '' }));
  if (first === undefined) throw new Error('there must be an account');
  const pages: PreparedPage[] = [];
  for (const { accountId, query: text, depth } of drawPages([first, ...rest], DRAWS)) {
    const read = readParameters(text, () => 'malformed');
    if (!read.ok) throw new Error(`a draw is no query: ${JSON.stringify(read.fields)}`);
    let full: PreparedPage | undefined;
    let query: PageQuery = { ...read.query, accountId };
    for (let before = 0; before <= depth; before++) {
      const { rows, hasMore } = await view.page(query);
      const photos = rows.flatMap(({ pump, odometer }) => [pump ?? [], odometer ?? []].flat());
      if (photos.length < 2 * PAGE_RECORDS) break;
      full = { query, photos };
      if (!hasMore) break;
      query = { ...query, after: rows.at(-1) };
    }
    if (full !== undefined) pages.push(full);
  }
  return pages;
}

function photoStore(): Presigner {
  return createPresigner({
    endpoint: 'https://photos.example',
    region: 'eu-central-1',
    bucket: 'photos',
    accessKeyId: 'AKIABENCH',
    secretAccessKey: 'bench',
  });
}
