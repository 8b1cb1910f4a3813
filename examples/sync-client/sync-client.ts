import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger, LedgerError, type Window } from '../ledger/ledger.ts';
import { parseExactly, type Transaction } from '../ledger/transaction.ts';

const DAY_MS = 86_400_000;
const WINDOW_MS = 31 * DAY_MS;
const OVERLAP_MS = 30 * DAY_MS;
const PAGE_SIZE = 100;
const MAX_TRIES = 8;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_RESTARTS = 3;
const LOCK_WAIT_MS = 30_000;
const ACCESS_WARNING_MS = 30 * DAY_MS;

export interface SyncOptions {
  /** The base URL, which ends with `/api/v1/integration`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The prefix of `apiKey`, if the ledger was pulled with another key of the same account until now. */
  readonly confirmKey?: string | undefined;
  readonly ledger: Ledger;
  /** The first moment of `created_at` that you want, in milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  /**
   * How far before the end of the last sync this one begins, to find transactions that were voided or recorded late.
   */
  readonly overlapMs?: number;
  /** Allows many transactions to vanish from a window. */
  readonly removeMuch?: boolean;
  readonly onPage?: (progress: Progress) => void;
  /** Replace the global `fetch` and the real wait. */
  readonly fetch?: typeof fetch;
  readonly wait?: (ms: number) => Promise<unknown>;
}

export interface Progress {
  readonly window: Window;
  readonly pages: number;
  readonly transactions: number;
  readonly added: number;
  readonly changed: number;
  /** The number of voided or cancelled transactions, which are no longer in the answer for their time. */
  readonly removed: number;
  /** When the account's access ends; `null` if no end is set. */
  readonly accessEnds: string | null;
}

interface Page {
  readonly data: readonly Transaction[];
  readonly pagination: { readonly next_cursor: string | null };
}

interface Answer extends Page {
  readonly accessEnds: string | null;
}

/**
 * Brings the ledger up to date with the service: the first time with every transaction from `fromMs` to `toMs`, later
 * with new ones and the overlap before them. An interrupted sync is finished first, from the last staged page. Changes
 * in earlier pages since then are found by the next sync. A ledger that was pulled with another key is left alone.
 */
export async function sync(options: SyncOptions): Promise<Omit<Progress, 'window'>> {
  const { ledger, apiKey, confirmKey } = options;
  ledger.useKey(prefixOf(apiKey), confirmKey);
  const none = { pages: 0, transactions: 0, added: 0, changed: 0, removed: 0, accessEnds: null };
  const counts = await pull(none, options);
  begin(options);
  return pull(counts, options);
}

/** Returns the part of a key that is not secret. */
function prefixOf(apiKey: string): string {
  const [, prefix] = /^svc_(?:live|test)_([a-z0-9]+)_/.exec(apiKey) ?? [];
  if (prefix === undefined)
    throw new SettingError('API_KEY must be as you got it: it begins with svc_live_ or svc_test_');
  return prefix;
}

/** Pulls from the next page to the end of the sync in progress, if there is one. Adds to the counts. */
async function pull(
  before: Omit<Progress, 'window'>,
  options: SyncOptions,
): Promise<Omit<Progress, 'window'>> {
  const { ledger, onPage, removeMuch = false } = options;
  const key = prefixOf(options.apiKey);
  let counts = before;
  let restarts = 0;
  for (let window = ledger.interrupted(); window !== null; window = ledger.interrupted()) {
    const page = await get(window, options);
    if (page === 'cursor refused') {
      if (++restarts > MAX_RESTARTS) throw new SyncError('the service keeps refusing its own cursors');
      ledger.restart(window);
      continue;
    }
    const { next_cursor: nextCursor } = page.pagination;
    const nextWindowTo = window.to < window.target ? endOf(window.to, window.target) : null;
    const stored = ledger.store(
      window,
      { transactions: page.data, nextCursor, nextWindowTo },
      { key, removeMuch },
    );
    counts = {
      pages: counts.pages + 1,
      transactions: counts.transactions + page.data.length,
      added: counts.added + stored.added,
      changed: counts.changed + stored.changed,
      removed: counts.removed + stored.removed,
      accessEnds: page.accessEnds,
    };
    onPage?.({ window, ...counts });
  }
  return counts;
}

function begin({ ledger, fromMs, toMs, overlapMs = OVERLAP_MS }: SyncOptions): void {
  const target = new Date(toMs).toISOString();
  const synced = ledger.synced();
  const reachesBack = synced === null || fromMs < Date.parse(synced.from);
  const usualMs = reachesBack ? fromMs : Math.max(fromMs, Date.parse(synced.to) - overlapMs);
  // A webhook can bring what was created before the overlap. It stays provisional until a pull has covered its time.
  const oldest = ledger.oldestUnshown();
  const startMs = oldest === null ? usualMs : Math.min(usualMs, Date.parse(oldest));
  if (startMs > toMs) return;
  const from = new Date(startMs).toISOString();
  ledger.begin({ from, to: endOf(from, target), target });
}

/** Returns the end of a window. Both ends are inclusive: the next window begins where the last one ends. */
function endOf(from: string, target: string): string {
  const end = new Date(Date.parse(from) + WINDOW_MS).toISOString();
  return end < target ? end : target;
}

/**
 * Gets a page. Retries 429 after `Retry-After`, and 408, 5xx and broken connections with growing waits. Other errors are
 * final, that of a certificate included.
 */
async function get({ from, to, cursor }: Window, options: SyncOptions): Promise<Answer | 'cursor refused'> {
  const { baseUrl, apiKey, fetch: send = fetch, wait = sleep } = options;
  const query = new URLSearchParams({ from, to, limit: `${PAGE_SIZE}`, ...(cursor !== null && { cursor }) });
  for (let attempt = 1; ; attempt++) {
    let waitMs = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), MAX_WAIT_MS);
    let problem: string;
    try {
      const answer = await send(`${baseUrl}/transactions?${query}`, {
        headers: { 'X-API-Key': apiKey },
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        redirect: 'error',
      });
      const text = await answer.text();
      if (answer.ok) return { ...readPage(text), accessEnds: answer.headers.get('X-Access-Expires-At') };
      const refusal = readRefusal(text);
      if (answer.status === 400 && cursor !== null && refusal.fields?.cursor) return 'cursor refused';
      problem = describe(answer.status, refusal);
      if (answer.status !== 408 && answer.status !== 429 && answer.status < 500) throw new SyncError(problem);
      waitMs = Number(answer.headers.get('Retry-After') ?? 0) * 1000 || waitMs;
    } catch (error) {
      if (error instanceof SyncError) throw error;
      const { code = '', message = '' } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      problem = `no answer from ${baseUrl}: ${message || code || (error as Error).message}`;
      if (/CERT|VERIFY/.test(code))
        throw new SyncError(`${problem}: set NODE_EXTRA_CA_CERTS to its certificate, if you trust it`);
    }
    if (attempt === MAX_TRIES) throw new SyncError(`gave up after ${attempt} tries: ${problem}`);
    await wait(waitMs);
  }
}

function readPage(text: string): Page {
  const page = parseExactly(text) as Partial<Page> | null;
  if (Array.isArray(page?.data) && page.pagination !== undefined) return page as Page;
  throw new SyncError('the answer is not a page of transactions: is BASE_URL right?');
}

interface Refusal {
  readonly code?: string;
  readonly message?: string;
  readonly request_id?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

function readRefusal(text: string): Refusal {
  try {
    return (JSON.parse(text) as { error?: Refusal }).error ?? {};
  } catch {
    return {}; // for example a page from a proxy
  }
}

function describe(status: number, { code = '', message = '', request_id: id, fields = {} }: Refusal): string {
  const named = Object.entries(fields).map(([name, fault]) => `; ${name}: ${fault}`);
  return `${status} ${code} ${message}${named.join('')}${id === undefined ? '' : ` (request ${id})`}`.trim();
}

/** A problem that a retry does not solve. Its message says what is wrong. */
export class SyncError extends Error {}

/** A setting that is missing or wrong. */
class SettingError extends Error {}

function settingsOf(env: NodeJS.ProcessEnv): Omit<SyncOptions, 'ledger' | 'onPage'> {
  const { BASE_URL, API_KEY, FROM, TO, OVERLAP_DAYS = '30', REMOVE_MUCH, CONFIRM_KEY } = env;
  if (!BASE_URL || !API_KEY || !FROM) throw new SettingError('set BASE_URL, API_KEY and FROM: see README.md');
  if (!URL.canParse(BASE_URL))
    throw new SettingError('BASE_URL must be a URL that ends with /api/v1/integration');
  const time = (name: string, text: string): number => {
    const ms = Date.parse(text);
    if (Number.isNaN(ms)) throw new SettingError(`${name} must be a date-time such as 2026-09-01T00:00:00Z`);
    return ms;
  };
  if (!/^\d{1,4}$/.test(OVERLAP_DAYS)) throw new SettingError('OVERLAP_DAYS must be a whole number of days');
  return {
    baseUrl: BASE_URL.replace(/\/+$/, ''),
    apiKey: API_KEY,
    confirmKey: CONFIRM_KEY,
    fromMs: time('FROM', FROM),
    toMs: TO ? time('TO', TO) : Date.now(),
    overlapMs: Number(OVERLAP_DAYS) * DAY_MS,
    removeMuch: REMOVE_MUCH === 'yes',
  };
}

/** Runs the sync with the settings from the environment; see README.md. */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const settings = settingsOf(env);
  const file = env.DATABASE ?? 'fuel.db';
  const ledger = new Ledger(file, { lockWaitMs: LOCK_WAIT_MS });
  try {
    if (ledger.interrupted() !== null) process.stderr.write('continuing an interrupted sync\n');
    const { transactions, added, changed, removed, accessEnds } = await sync({
      ...settings,
      ledger,
      onPage: showProgress,
    });
    process.stdout.write(
      `${transactions} transactions pulled: ${added} new, ${changed} changed, ${removed} removed; ` +
        `${file} holds ${ledger.count()}\n`,
    );
    if (accessEnds !== null && Date.parse(accessEnds) - Date.now() < ACCESS_WARNING_MS)
      process.stderr.write(`access ends at ${accessEnds}: ask the operator to extend it\n`);
  } finally {
    ledger.close();
  }
}

function showProgress({ window, pages, transactions }: Progress): void {
  const [from, to] = [window.from.slice(0, 10), window.to.slice(0, 10)];
  process.stderr.write(`page ${pages}, ${from} to ${to}: ${transactions} transactions so far\n`);
}

if (import.meta.main) {
  try {
    await main(process.env);
  } catch (error) {
    const isKnown =
      error instanceof SyncError || error instanceof LedgerError || error instanceof SettingError;
    const { message, code } = error as NodeJS.ErrnoException;
    if (!isKnown && code !== 'ERR_SQLITE_ERROR') throw error;
    process.stderr.write(`sync-client: ${message}\n`);
    process.exitCode = error instanceof SettingError ? 2 : 1;
  }
}
