import { existsSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { INDEXES, SCHEMA, VERSION } from './schema.ts';
import type { Transaction } from './transaction.ts';

/** How long to wait for another process's write: less than the 500 ms in which a webhook must be answered. */
const LOCK_WAIT_MS = 300;
/** A webhook may arrive before the pull channel shows its transaction. For this long it does not count as vanished. */
const PUSHED_GRACE_MS = 10 * 60_000;
/** How long a delivery's id is remembered: longer than the operator can redeliver it. */
const DELIVERY_DAYS = 100;
const DAY_MS = 86_400_000;
/** A window that would lose more transactions than this, and more than a quarter of them, needs a person. */
const FEW = 20;

const IN_WINDOW = 'created_at BETWEEN :from AND :to';
/** Selects transactions that no page of the window has shown, and that a webhook has not just brought. */
const VANISHED = 'id NOT IN (SELECT id FROM staged) AND coalesce(pushed_at < :recent, true)';
/** Compares what never changes, whatever is added to records: if it differs, it is another transaction. */
const IS_ANOTHER = `t.record <> s.record AND (t.created_at, t.corporate_id, t.total_amount) <>
  (s.record ->> 'created_at', s.record ->> '$.corporate.id', s.record ->> '$.fees.total_amount')`;

/** A part of a sync: at most 31 days, both ends inclusive. */
export interface Window {
  readonly from: string;
  readonly to: string;
  readonly startedAt: string;
  /** The cursor of the page to ask for next; `null` for the first page. */
  readonly cursor: string | null;
  /** The end of the whole sync. */
  readonly target: string;
}

export interface Page {
  readonly transactions: readonly Transaction[];
  readonly nextCursor: string | null;
  /** The end of the next window; `null` if this is the last one. It takes effect with the last page. */
  readonly nextWindowTo: string | null;
}

/** The changes that merging a window made. */
export interface Counts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** A problem that a person has to decide or repair. Its message says what to do. */
export class LedgerError extends Error {}

/**
 * Your transactions in one SQLite file. The receiver and the sync client may use the same file at the same time. Each
 * method is one transaction, so a process that is killed leaves it done completely or not at all.
 */
export class Ledger {
  readonly #db: DatabaseSync;

  constructor(file: string, { lockWaitMs = LOCK_WAIT_MS } = {}) {
    this.#db = new DatabaseSync(file, { timeout: lockWaitMs });
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    this.#atOnce(() => {
      const version = Number(this.#row('PRAGMA user_version').user_version);
      if (version === 0) this.#db.exec(SCHEMA);
      else if (version !== VERSION) throw new LedgerError(`${file} has another version (${version})`);
      this.#db.exec(INDEXES);
    });
  }

  close(): void {
    this.#db.close();
  }

  /**
   * Stores the transaction of a webhook, unless the ledger has it or it was removed: where the channels differ, the
   * pull is right. It is durable when this returns.
   */
  receive(deliveryId: string, transaction: Transaction): 'stored' | 'stored before' {
    return this.#atOnce(() => {
      const now = new Date();
      const isNew = this.#run(
        'INSERT OR IGNORE INTO deliveries VALUES (?, ?)',
        deliveryId,
        now.toISOString(),
      );
      if (isNew === 0) return 'stored before';
      const remembered = new Date(now.getTime() - DELIVERY_DAYS * DAY_MS).toISOString();
      this.#run('DELETE FROM deliveries WHERE received_at < ?', remembered);
      const stored = this.#run(
        `INSERT INTO transactions (id, record, pushed_at) SELECT :id, :record, :now
           WHERE NOT EXISTS (SELECT 1 FROM removed WHERE id = :id) ON CONFLICT (id) DO NOTHING`,
        { id: transaction.id, record: recordOf(transaction), now: now.toISOString() },
      );
      return stored === 0 ? 'stored before' : 'stored';
    });
  }

  /** Returns the range that has been synced; `null` before the first sync has ended. */
  synced(): { readonly from: string; readonly to: string } | null {
    const { synced_from: from, synced_to: to } = this.#row('SELECT * FROM sync');
    return from === null || to === null ? null : { from: String(from), to: String(to) };
  }

  /** Returns when the oldest transaction that no pull has shown was created; `null` if there is none. */
  oldestUnshown(): string | null {
    const sql = 'SELECT min(created_at) AS oldest FROM transactions WHERE pushed_at IS NOT NULL';
    const { oldest } = this.#row(sql);
    return oldest === null ? null : String(oldest);
  }

  /** Returns the window of an interrupted sync; `null` if there is none. */
  interrupted(): Window | null {
    const row = this.#row('SELECT * FROM sync');
    if (row.target === null) return null;
    const { cursor } = row;
    return {
      from: String(row.window_from),
      to: String(row.window_to),
      startedAt: String(row.window_started_at),
      cursor: cursor === null ? null : String(cursor),
      target: String(row.target),
    };
  }

  /**
   * Binds the ledger to the key with this prefix. Throws if it was pulled with another key, unless `confirmed` names
   * this one. What the other key has staged is then forgotten.
   */
  useKey(key: string, confirmed: string | undefined): void {
    this.#atOnce(() => {
      const { key: former } = this.#row('SELECT key FROM sync');
      if (former === null || former === key) return; // a new ledger is bound when its first page is stored
      if (confirmed !== key) {
        throw new LedgerError(
          `this ledger was pulled with the key ${former}, and API_KEY is ${key}: if both are of the same account, ` +
            `run it with CONFIRM_KEY=${key}, otherwise name another file in DATABASE`,
        );
      }
      this.#run('UPDATE sync SET key = ?', key);
      const window = this.interrupted();
      if (window !== null) this.#beginWindow(window.from, window.to);
    });
  }

  /** Begins a sync up to `target` with its first window. */
  begin({ from, to, target }: { from: string; to: string; target: string }): void {
    this.#atOnce(() => {
      this.#run('UPDATE sync SET begun_from = ?, target = ?', from, target);
      this.#beginWindow(from, to);
    });
  }

  /** Starts the window again, since its cursor is no longer valid. */
  restart({ from, to }: Window): void {
    this.#atOnce(() => this.#beginWindow(from, to));
  }

  /**
   * Stages a page, and stores where to continue. With the last page of a window, the window is merged: its transactions
   * are stored, vanished ones are removed, and the next window begins or the sync ends. If many have vanished, or are
   * other transactions than before, it throws instead and starts the window again, since the key may be another
   * account's. `removeMuch` allows many to vanish.
   */
  store(window: Window, page: Page, { key, removeMuch }: { key: string; removeMuch: boolean }): Counts {
    const merged = this.#atOnce(() => {
      const { from, to, startedAt, cursor } = window;
      const moved = this.#run(
        `UPDATE sync SET key = :key, cursor = :next WHERE coalesce(key, :key) = :key AND cursor IS :cursor
           AND (window_from, window_to, window_started_at) = (:from, :to, :startedAt)`,
        { key, next: page.nextCursor, cursor, from, to, startedAt },
      );
      if (moved === 0) throw new LedgerError('another sync client is using this file: stop one of them');
      for (const transaction of page.transactions)
        this.#run('INSERT OR REPLACE INTO staged VALUES (?, ?)', transaction.id, recordOf(transaction));
      if (page.nextCursor !== null) return { added: 0, changed: 0, removed: 0 };
      const counts = this.#merge(window, removeMuch);
      if (typeof counts === 'string') this.#beginWindow(from, to);
      else if (page.nextWindowTo !== null) this.#beginWindow(to, page.nextWindowTo);
      else this.#end();
      return counts;
    });
    if (typeof merged === 'string') throw new LedgerError(merged);
    return merged;
  }

  count(): number {
    return Number(this.#row('SELECT count(*) AS n FROM transactions').n);
  }

  /** Yields every record as JSON, newest first. */
  *records(): Generator<string> {
    const rows = this.#db.prepare('SELECT record FROM transactions ORDER BY created_at DESC, id DESC');
    for (const { record } of rows.iterate()) yield String(record);
  }

  #beginWindow(from: string, to: string): void {
    this.#run('DELETE FROM staged');
    const now = new Date().toISOString();
    this.#run(
      'UPDATE sync SET window_from = ?, window_to = ?, window_started_at = ?, cursor = NULL',
      ...[from, to, now],
    );
  }

  #end(): void {
    this.#run('DELETE FROM staged');
    this.#run(`UPDATE sync SET synced_from = min(coalesce(synced_from, begun_from), begun_from),
      synced_to = max(coalesce(synced_to, target), target), begun_from = NULL, target = NULL,
      window_from = NULL, window_to = NULL, window_started_at = NULL, cursor = NULL`);
  }

  /** Makes the ledger equal to the staged window. Returns why it does not, if a person has to decide. */
  #merge({ from, to, startedAt }: Window, removeMuch: boolean): Counts | string {
    const recent = new Date(Date.parse(startedAt) - PUSHED_GRACE_MS).toISOString();
    const { staged, known, changed, others } = this.#row(
      `SELECT count(*) AS staged, count(t.id) AS known, count(*) FILTER (WHERE t.record <> s.record) AS changed,
         count(*) FILTER (WHERE ${IS_ANOTHER}) AS others FROM staged AS s LEFT JOIN transactions AS t USING (id)`,
    ) as { staged: number; known: number; changed: number; others: number };
    const { held, removed } = this.#row(
      `SELECT count(*) AS held, count(*) FILTER (WHERE ${VANISHED}) AS removed FROM transactions WHERE ${IN_WINDOW}`,
      { from, to, recent },
    ) as { held: number; removed: number };
    const doubt = 'does API_KEY belong to the right account?';
    if (isMany(others, known))
      return `${others} of ${known} ids from ${from} to ${to} are now other transactions: ${doubt} If so, name a new file in DATABASE`;
    if (isMany(removed, held) && !removeMuch)
      return `${removed} of ${held} transactions from ${from} to ${to} have disappeared: ${doubt} If they were voided, run it once with REMOVE_MUCH=yes`;
    const which = { from, to, recent };
    const now = new Date().toISOString();
    this.#run(
      `INSERT INTO removed SELECT id, record, :now FROM transactions WHERE ${IN_WINDOW} AND ${VANISHED}`,
      { ...which, now },
    );
    this.#run(`DELETE FROM transactions WHERE ${IN_WINDOW} AND ${VANISHED}`, which);
    // Only what differs is written: the receiver waits meanwhile.
    this.#run(`INSERT OR REPLACE INTO transactions (id, record)
      SELECT id, s.record FROM staged AS s LEFT JOIN transactions AS t USING (id)
      WHERE t.record IS NOT s.record OR t.pushed_at IS NOT NULL`);
    return { added: staged - known, changed, removed };
  }

  #row(sql: string, ...values: Values): Record<string, SQLOutputValue> {
    return this.#db.prepare(sql).get(...(values as [])) ?? {};
  }

  /** Runs a statement. Returns how many rows it changed. */
  #run(sql: string, ...values: Values): number {
    return Number(this.#db.prepare(sql).run(...(values as [])).changes);
  }

  #atOnce<T>(work: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

/** Returns the record as it is stored. */
function recordOf({ images: _, ...rest }: Transaction): string {
  return JSON.stringify(rest);
}

function isMany(count: number, all: number): boolean {
  return count > FEW && count > all / 4;
}

type Values = readonly (string | number | null | Readonly<Record<string, string | number | null>>)[];

/** Ends quietly when the reader of a pipe has ended, as `| head` does. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

/** Prints the ledger's records, one a line: `node ledger.ts fuel.db`. */
function main(file: string | undefined): void {
  if (file === undefined || !existsSync(file)) {
    process.stderr.write(`ledger: ${file === undefined ? 'name a file' : `there is no ${file}`}\n`);
    process.exitCode = 2;
    return;
  }
  process.stdout.on('error', endQuietly);
  const ledger = new Ledger(file);
  for (const record of ledger.records()) process.stdout.write(`${record}\n`);
  ledger.close();
}

if (import.meta.main) main(process.argv[2]);
