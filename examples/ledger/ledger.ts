import { existsSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import type { Transaction } from './transaction.ts';

/** How long to wait for another process's write: less than the 500 ms in which a webhook must be answered. */
const LOCK_WAIT_MS = 300;
/** A webhook may arrive before the pull channel shows its transaction. For this long it does not count as vanished. */
const PUSHED_GRACE_MS = 10 * 60_000;
/** How long a delivery's id is remembered: longer than the operator can redeliver it. */
const DELIVERY_DAYS = 100;
const DAY_MS = 86_400_000;
const VERSION = 1;

const SCHEMA = `
  CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    confirmed_at TEXT,
    correction_reference_id INTEGER,
    corporate_id INTEGER NOT NULL,
    number_plate TEXT,
    -- amounts are text, exactly as they came: '45.20'
    liters TEXT NOT NULL,
    price_per_liter TEXT NOT NULL,
    amount TEXT NOT NULL,
    total_fees TEXT NOT NULL,
    total_vat TEXT NOT NULL,
    total_amount TEXT NOT NULL,
    -- the whole record as JSON with its decimals as text, without the image links, which expire
    record TEXT NOT NULL,
    stored_at TEXT NOT NULL,
    -- the window of a sync that was in progress when it was stored last, and whether a pull has shown it
    round INTEGER NOT NULL,
    pulled INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX by_created_at ON transactions (created_at);
  CREATE TABLE removed (id INTEGER NOT NULL, record TEXT NOT NULL, removed_at TEXT NOT NULL) STRICT;
  CREATE TABLE deliveries (id TEXT PRIMARY KEY, received_at TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX by_received_at ON deliveries (received_at);
  CREATE TABLE sync (
    round INTEGER NOT NULL,
    -- the range that is synced
    synced_from TEXT,
    synced_to TEXT,
    -- the sync in progress: where it began and ends, its window, and the page to ask for next
    begun_from TEXT,
    target TEXT,
    window_from TEXT,
    window_to TEXT,
    window_started_at TEXT,
    cursor TEXT
  ) STRICT;
  INSERT INTO sync (round) VALUES (0);
  PRAGMA user_version = ${VERSION};
`;
const UPSERT = `
  INSERT INTO transactions VALUES (:id, :status, :created_at, :confirmed_at, :correction_reference_id, :corporate_id,
    :number_plate, :liters, :price_per_liter, :amount, :total_fees, :total_vat, :total_amount, :record, :stored_at,
    (SELECT round FROM sync), :pulled)
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, created_at = excluded.created_at,
    confirmed_at = excluded.confirmed_at, correction_reference_id = excluded.correction_reference_id,
    corporate_id = excluded.corporate_id, number_plate = excluded.number_plate, liters = excluded.liters,
    price_per_liter = excluded.price_per_liter, amount = excluded.amount, total_fees = excluded.total_fees,
    total_vat = excluded.total_vat, total_amount = excluded.total_amount, record = excluded.record,
    stored_at = excluded.stored_at, round = excluded.round, pulled = max(pulled, excluded.pulled)`;
/** Selects transactions in the window that were stored before it began and that no page of it has shown. */
const VANISHED = `created_at BETWEEN :from AND :to AND round < :round AND (pulled = 1 OR stored_at < :recent)`;

/** A part of a sync: at most 31 days, both ends inclusive. */
export interface Window {
  readonly round: number;
  readonly from: string;
  readonly to: string;
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

export interface PageCounts {
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
    });
  }

  close(): void {
    this.#db.close();
  }

  /** Stores the transaction of a webhook, once per delivery. It is durable when this returns. */
  receive(deliveryId: string, transaction: Transaction): 'stored' | 'stored before' {
    return this.#atOnce(() => {
      const now = new Date();
      const isNew = this.#run(
        'INSERT OR IGNORE INTO deliveries VALUES (?, ?)',
        deliveryId,
        now.toISOString(),
      );
      // It is not stored again, since it may have been voided and removed in the meantime.
      if (isNew === 0) return 'stored before';
      const remembered = new Date(now.getTime() - DELIVERY_DAYS * DAY_MS).toISOString();
      this.#run('DELETE FROM deliveries WHERE received_at < ?', remembered);
      this.#upsert(transaction, 0);
      return 'stored';
    });
  }

  /** Returns the range that has been synced; `null` before the first sync has ended. */
  synced(): { readonly from: string; readonly to: string } | null {
    const { synced_from: from, synced_to: to } = this.#row('SELECT * FROM sync');
    return from === null || to === null ? null : { from: String(from), to: String(to) };
  }

  /** Returns the window of an interrupted sync; `null` if there is none. */
  interrupted(): Window | null {
    const row = this.#row('SELECT * FROM sync');
    if (row.target === null) return null;
    const { round, cursor } = row;
    return {
      round: Number(round),
      from: String(row.window_from),
      to: String(row.window_to),
      cursor: cursor === null ? null : String(cursor),
      target: String(row.target),
    };
  }

  /** Begins a sync up to `target` with its first window. */
  begin({ from, to, target }: { from: string; to: string; target: string }): Window {
    return this.#atOnce(() => {
      this.#run('UPDATE sync SET begun_from = ?, target = ?', from, target);
      return this.#beginWindow(from, to);
    });
  }

  /** Starts the window again, since its cursor is no longer valid. */
  restart({ from, to }: Window): Window {
    return this.#atOnce(() => this.#beginWindow(from, to));
  }

  /**
   * Stores a page and where to continue. With the last page of a window, vanished transactions are removed, and the
   * next window begins or the sync ends. Throws if that would remove many, unless `removeMuch`: the key may be another
   * account's.
   */
  store(window: Window, page: Page, removeMuch: boolean): PageCounts {
    return this.#atOnce(() => {
      const moved = this.#run(
        'UPDATE sync SET cursor = ? WHERE round = ? AND cursor IS ?',
        page.nextCursor,
        window.round,
        window.cursor,
      );
      if (moved === 0) throw new LedgerError('another sync client is using this file: stop one of them');
      let [added, changed] = [0, 0];
      for (const transaction of page.transactions) {
        const outcome = this.#upsert(transaction, 1);
        if (outcome === 'added') added += 1;
        if (outcome === 'changed') changed += 1;
      }
      if (page.nextCursor !== null) return { added, changed, removed: 0 };
      const removed = this.#removeVanished(window, removeMuch);
      if (page.nextWindowTo !== null) this.#beginWindow(window.to, page.nextWindowTo);
      else this.#end();
      return { added, changed, removed };
    });
  }

  count(): number {
    return Number(this.#row('SELECT count(*) AS n FROM transactions').n);
  }

  /** Yields every record as JSON, newest first. */
  *records(): Generator<string> {
    const rows = this.#db.prepare('SELECT record FROM transactions ORDER BY created_at DESC, id DESC');
    for (const { record } of rows.iterate()) yield String(record);
  }

  #beginWindow(from: string, to: string): Window {
    const row = this.#row(
      `UPDATE sync SET round = round + 1, window_from = ?, window_to = ?, window_started_at = ?, cursor = NULL
       RETURNING round, target`,
      from,
      to,
      new Date().toISOString(),
    );
    return { round: Number(row.round), from, to, cursor: null, target: String(row.target) };
  }

  #end(): void {
    this.#run(`UPDATE sync SET synced_from = min(coalesce(synced_from, begun_from), begun_from),
      synced_to = max(coalesce(synced_to, target), target), begun_from = NULL, target = NULL, cursor = NULL`);
  }

  #removeVanished({ from, to, round }: Window, removeMuch: boolean): number {
    const startedMs = Date.parse(String(this.#row('SELECT window_started_at FROM sync').window_started_at));
    const recent = new Date(startedMs - PUSHED_GRACE_MS).toISOString();
    const which = { from, to, round, recent };
    const count = `SELECT count(*) AS n FROM transactions WHERE`;
    const vanished = Number(this.#row(`${count} ${VANISHED}`, which).n);
    if (vanished === 0) return 0;
    const all = Number(this.#row(`${count} created_at BETWEEN :from AND :to`, { from, to }).n);
    if (vanished > 20 && vanished > all / 4 && !removeMuch) {
      throw new LedgerError(
        `${vanished} of ${all} transactions from ${from} to ${to} have disappeared: does API_KEY belong to the right account? ` +
          'If they were voided, run it once with REMOVE_MUCH=yes',
      );
    }
    const now = new Date().toISOString();
    const copied = { ...which, now };
    this.#run(`INSERT INTO removed SELECT id, record, :now FROM transactions WHERE ${VANISHED}`, copied);
    this.#run(`DELETE FROM transactions WHERE ${VANISHED}`, which);
    return vanished;
  }

  #upsert(transaction: Transaction, pulled: 0 | 1): 'added' | 'changed' | 'same' {
    const { id, status, created_at, confirmed_at, correction_reference_id } = transaction;
    const { images: _, ...rest } = transaction;
    const { liters, price_per_liter, amount } = transaction.fuel;
    const record = JSON.stringify(rest);
    const before = this.#db.prepare('SELECT record FROM transactions WHERE id = ?').get(id);
    this.#db.prepare(UPSERT).run({
      ...{ id, status, created_at, confirmed_at, correction_reference_id, record, pulled },
      corporate_id: transaction.corporate.id,
      number_plate: transaction.vehicle.number_plate,
      ...{ liters, price_per_liter, amount },
      total_fees: transaction.fees.total_fees,
      total_vat: transaction.fees.total_vat,
      total_amount: transaction.fees.total_amount,
      stored_at: new Date().toISOString(),
    });
    if (before === undefined) return 'added';
    return before.record === record ? 'same' : 'changed';
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
