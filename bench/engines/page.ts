import { type Collection, type Document, MongoClient } from 'mongodb';
import { cutRecord } from '../../projections/record.ts';
import { systemClock } from '../../src/base/clock.ts';
import { Random } from '../../src/customers/sample/random.ts';
import { sampleAccount } from '../../src/customers/sample/sample-directory.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { readParameters } from '../../src/pull/parameters.ts';
import { pageBody } from '../../src/pull/transactions.ts';
import type { PageQuery, TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { createPresigner, type Presigner } from '../../src/records/presign.ts';
import { type Verdict, withMongodb } from '../support/engines.ts';
import { fillView } from '../support/fill-view.ts';
import { drawPages, PAGE_RECORDS } from '../support/page-draws.ts';
import { print, reportRatio, runPairs } from '../support/pairs.ts';
import { ACCOUNTS } from '../support/sample-events.ts';

const ROWS = Number(process.env.BENCH_ROWS ?? 2_000_000);
const DRAWS = 200;
const VALID_FOR_SECONDS = 3_600;
/** The pages of one run, by how many are in flight. */
const PAGES = { 1: 200, 16: 800 } as const;
/** The limits for the time of a page, by how many are in flight. */
const TARGETS = { 1: 1.3, 16: 1.25 } as const;

const HINTS: Readonly<Record<string, string>> = {
  by_group: 'by_corporate_group',
  by_corporate: 'by_corporate',
  by_groupcorporate: 'by_corporate_group_and_corporate',
};

export interface PreparedPage {
  readonly query: PageQuery;
  /** The keys of its 100 photos. */
  readonly photos: readonly string[];
}

/** Reads one page from start to end. */
export type ReadPage = (page: PreparedPage) => Promise<void>;

/** Measures a page of 50 with 100 image URLs, against the bare query with the same number of signed URLs. */
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

export function readOurs(view: TransactionsView): ReadPage {
  const presigner = photoStore();
  return async ({ query }) => {
    const page = await view.page(query);
    const { presign, expiresAtMs } = presigner.at(systemClock.now(), VALID_FOR_SECONDS);
    const terms = { mobileNumber: true, presign, expiresAt: formatDateTime(expiresAtMs) };
    const body = pageBody(page.rows, terms, '{}');
    if (page.rows.length !== PAGE_RECORDS || body.length < PAGE_RECORDS) throw new Error('not a full page');
  };
}

function readBare(rows: Collection): ReadPage {
  const presigner = photoStore();
  return async ({ query, photos }) => {
    const { hint, filter } = searchOf(query);
    const limit = PAGE_RECORDS + 1;
    const options = { hint, limit, batchSize: limit + 1, raw: true };
    const found = await rows.find(filter, options).sort({ created_at: -1, _id: -1 }).toArray();
    const { presign } = presigner.at(systemClock.now(), VALID_FOR_SECONDS);
    const urls = photos.map(presign);
    if (found.length < PAGE_RECORDS || urls.length !== 2 * PAGE_RECORDS) throw new Error('not a full page');
  };
}

function searchOf({ accountId, fromMs, toMs, statuses, references = {}, after }: PageQuery) {
  const { corporate_group_id: group, corporate_id: corporates } = references;
  const hint = `by_${group === undefined ? '' : 'group'}${corporates === undefined ? '' : 'corporate'}`;
  const filter: Document = {
    account_id: accountId,
    status: { $in: statuses },
    created_at: { $gte: new Date(fromMs), $lte: new Date(after?.createdAtMs ?? toMs) },
    ...(group !== undefined && { corporate_group_id: group }),
    ...(corporates !== undefined && { corporate_id: { $in: [corporates].flat() } }),
    ...(after && { $or: [{ created_at: { $lt: new Date(after.createdAtMs) } }, { _id: { $lt: after.id } }] }),
  };
  return { filter, hint: HINTS[hint] ?? 'by_account' };
}

/** Walks to each draw's depth. If a list ends earlier, the walk ends at its last full page. */
export async function preparePages(view: TransactionsView): Promise<readonly PreparedPage[]> {
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
      const photos = rows.flatMap(({ record }) => {
        const { pump, odometer } = cutRecord(record, { mobileNumber: true });
        return [pump ?? [], odometer ?? []].flat();
      });
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
