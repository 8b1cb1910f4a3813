import { Random } from '../../src/customers/sample/random.ts';
import type { Page, PageClient, PageRequest } from './page-client.ts';
import type { Customer } from './provision.ts';
import { DAYS, END_MS } from './sample-events.ts';

export const PAGE_RECORDS = 50;

/** A request that can be made to both servers. */
export interface PageDraw {
  readonly accountId: number;
  /** The query without the cursor. */
  readonly query: string;
  /** The number of pages before it. */
  readonly depth: number;
}

const DAY_MS = 86_400_000;
const DEEPEST = 10;

/** Accounts, ranges, filters and depths drawn at random from a seed; most ranges are wide. */
export function drawPages(customers: readonly [Customer, ...Customer[]], count: number): PageDraw[] {
  const random = new Random(42);
  return Array.from({ length: count }, () => {
    const { account } = random.pick(customers);
    const days = random.chance(0.8) ? random.between([25, 31]) : random.between([10, 24]);
    const latestStart = DAYS - days;
    const fromMs = END_MS - (days + random.between([0, latestStart])) * DAY_MS;
    const filters = drawFilter(random, account);
    const query = new URLSearchParams({
      from: new Date(fromMs).toISOString(),
      to: new Date(fromMs + days * DAY_MS).toISOString(),
      ...filters,
    });
    const depth = random.chance(0.3) ? 0 : random.between([1, DEEPEST]);
    return { accountId: account.id, query: query.toString(), depth };
  });
}

function drawFilter(random: Random, { corporates, groups }: Customer['account']): Record<string, string> {
  const kind = random.next();
  if (kind < 0.45) return {};
  if (kind < 0.6) return { corporate_id: String(random.pick(corporates).id) };
  if (kind < 0.75) {
    const ids = new Set([1, 2, 3].map(() => random.pick(corporates).id));
    return { corporate_id: [...ids].join(',') };
  }
  if (kind < 0.9) return { corporate_group_id: String(groups[random.between([0, groups.length - 1])]?.id) };
  return { status: kind < 0.97 ? 'CONFIRMED' : 'EXTERNAL' };
}

/**
 * Walks to each draw's depth on one server, since each has its own cursors. If a list ends earlier, the walk ends
 * at its last full page. Returns `undefined` for a draw without any full page.
 */
export async function prepareRequests(
  client: PageClient,
  draws: readonly PageDraw[],
  customers: readonly Customer[],
): Promise<(PreparedPage | undefined)[]> {
  const prepared: (PreparedPage | undefined)[] = [];
  const queue = draws.entries();
  const worker = async (): Promise<void> => {
    for (const [index, draw] of queue) prepared[index] = await walk(client, draw, customers);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return prepared;
}

export interface PreparedPage {
  readonly request: PageRequest;
  readonly firstId: number;
}

async function walk(
  client: PageClient,
  draw: PageDraw,
  customers: readonly Customer[],
): Promise<PreparedPage | undefined> {
  const key = customers.find(({ account }) => account.id === draw.accountId)?.key ?? '';
  let full: PreparedPage | undefined;
  let cursor = '';
  for (let depth = 0; depth <= draw.depth; depth++) {
    const request = { path: `/transactions?${draw.query}${cursor}`, key };
    const page = await client.page(request);
    if (!isFull(page)) return full;
    full = { request, firstId: page.data[0]?.id ?? Number.NaN };
    if (page.pagination.next_cursor === null) return full;
    cursor = `&cursor=${encodeURIComponent(page.pagination.next_cursor)}`;
  }
  return full;
}

/** Returns the draws that are full pages on both servers. */
export function fullOnBoth(
  ours: readonly (PreparedPage | undefined)[],
  baseline: readonly (PreparedPage | undefined)[],
): { readonly ours: PreparedPage[]; readonly baseline: PreparedPage[] } {
  const both = { ours: [] as PreparedPage[], baseline: [] as PreparedPage[] };
  for (const [index, one] of ours.entries()) {
    const other = baseline[index];
    if (one === undefined || other === undefined) continue;
    both.ours.push(one);
    both.baseline.push(other);
  }
  return both;
}

/** True for a page of 50 records with 100 image URLs. */
function isFull({ data }: Page): boolean {
  if (data.length < PAGE_RECORDS) return false;
  const signed = data.every(({ images }) =>
    [images.pump, images.odometer].every((url) => url?.includes('X-Amz-Signature=')),
  );
  if (!signed) throw new Error('a record of the page lacks an image URL');
  return true;
}

/** Draws among the requests, the same sequence from the same seed. */
export function drawFrom(requests: readonly PreparedPage[], seed: number): () => PageRequest {
  const random = new Random(seed);
  return () => {
    const drawn = requests[random.between([0, requests.length - 1])];
    if (drawn === undefined) throw new Error('there is no page to ask for');
    return drawn.request;
  };
}
