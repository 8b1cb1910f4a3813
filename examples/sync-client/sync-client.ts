import { setTimeout as sleep } from 'node:timers/promises';

const WINDOW_MS = 31 * 24 * 60 * 60 * 1000;
const PAGE_SIZE = 100;
const MAX_TRIES = 6;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 60_000;

export interface Transaction {
  readonly id: number;
  readonly status: string;
  readonly created_at: string;
  readonly [field: string]: unknown;
}

export interface SyncOptions {
  /** Ends with `/api/v1/integration`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Range of `created_at`, milliseconds, both inclusive, of any length. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Your database: stores a transaction under its id and replaces an earlier one. */
  readonly upsert: (transaction: Transaction) => void | Promise<void>;
  /** Replace the global `fetch` and the real wait. */
  readonly fetch?: typeof fetch;
  readonly wait?: (ms: number) => Promise<unknown>;
}

interface Page {
  readonly data: readonly Transaction[];
  readonly pagination: { readonly next_cursor: string | null };
}

/**
 * Pulls every transaction of a range and upserts it by id; returns the ids. A longer range is pulled as consecutive
 * windows of at most 31 days. Transactions that you have of that range with other ids were voided or cancelled.
 */
export async function sync(options: SyncOptions): Promise<Set<number>> {
  const ids = new Set<number>();
  for (const { fromMs, toMs } of windows(options.fromMs, options.toMs)) {
    for await (const transaction of pull(options, fromMs, toMs)) {
      await options.upsert(transaction);
      ids.add(transaction.id);
    }
  }
  return ids;
}

/** Both ends of a window are inclusive, so the next one begins a millisecond later. */
export function* windows(fromMs: number, toMs: number): Generator<{ fromMs: number; toMs: number }> {
  for (let start = fromMs; start <= toMs; start += WINDOW_MS + 1) {
    yield { fromMs: start, toMs: Math.min(start + WINDOW_MS, toMs) };
  }
}

async function* pull(options: SyncOptions, fromMs: number, toMs: number): AsyncGenerator<Transaction> {
  const query = new URLSearchParams({
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    limit: String(PAGE_SIZE),
  });
  for (;;) {
    const page = await get(`${options.baseUrl}/transactions?${query}`, options);
    yield* page.data;
    const { next_cursor: cursor } = page.pagination;
    if (cursor === null) return;
    query.set('cursor', cursor); // the other parameters stay as they are
  }
}

/** Retries 429 after `Retry-After`, and 5xx and broken connections with growing waits; other answers are final. */
async function get(url: string, { apiKey, fetch: send = fetch, wait = sleep }: SyncOptions): Promise<Page> {
  for (let attempt = 1; ; attempt++) {
    const backoffMs = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), MAX_WAIT_MS);
    let waitMs = backoffMs;
    try {
      const answer = await send(url, { headers: { 'X-API-Key': apiKey } });
      if (answer.ok) return JSON.parse(await answer.text(), keepAmounts) as Page;
      const problem = `${answer.status} ${await answer.text()}`;
      if (answer.status !== 429 && answer.status < 500) throw new Refused(problem);
      if (attempt === MAX_TRIES) throw new Refused(`gave up after ${attempt} tries: ${problem}`);
      waitMs = Number(answer.headers.get('Retry-After') ?? 0) * 1000 || backoffMs;
    } catch (error) {
      if (error instanceof Refused || attempt === MAX_TRIES) throw error;
    }
    await wait(waitMs);
  }
}

/** Keeps amounts as text, `45.20`: a float would make it 45.2, and round longer ones. */
function keepAmounts(_field: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source.includes('.') ? source : value;
}

/** An answer that a retry does not change. */
export class Refused extends Error {}

/** Runs it with the settings from the environment, and prints one transaction per line: see README.md. */
async function main({ BASE_URL, API_KEY, FROM, TO }: NodeJS.ProcessEnv): Promise<void> {
  if (BASE_URL === undefined || API_KEY === undefined || FROM === undefined) {
    throw new Error('set BASE_URL, API_KEY and FROM (and TO, which is now unless set)');
  }
  const upsert = (transaction: Transaction): void =>
    void process.stdout.write(`${JSON.stringify(transaction)}\n`);
  const toMs = TO === undefined ? Date.now() : Date.parse(TO);
  const ids = await sync({ baseUrl: BASE_URL, apiKey: API_KEY, fromMs: Date.parse(FROM), toMs, upsert });
  process.stderr.write(`${ids.size} transactions\n`);
}

if (import.meta.main) await main(process.env);
