import { readAccountEvent } from '../../../src/accounts/read-account-event.ts';
import {
  ACCOUNTS,
  type AccountRow,
  KEYS,
  type KeyRow,
  MEMBERS,
  type MemberRow,
  PROGRESS,
  type ProgressRow,
} from '../../../src/accounts/rows/tables.ts';
import { ACCOUNT_STREAMS } from '../../../src/domain/account-events.ts';
import type { TablePlan } from '../../../src/tables/plan.ts';
import type { Write } from '../../../src/tables/tables.ts';
import { AccountModel } from '../../support/accounts/account-model.ts';
import { type AllRows, rowsDiffer } from '../../support/accounts/rows-agree.ts';
import type { LoggedEvent } from '../../support/engines/memory-log.ts';
import { owners } from '../core/timeline.ts';
import type { Simulation } from '../simulation.ts';

const STORE = 'accounts';
/** The heartbeat comes every second. A slow store delays it, but not while all is quiet. */
const MAX_AGE_MS = 5_000;
/** No two followers write in turns within this time while nothing is wrong: the lease is released, or lasts for 3 s. */
const IN_TURNS_MS = 10_000;
const CALM_MS = 60_000;

/** Compares the rows of accounts with a model of the same events, at each step of the checkpoint. */
export class AccountsWitness {
  readonly #of: Simulation;
  #model = new AccountModel();
  readonly #revisions = new Map<string, number>();
  #read = 0;
  /** The last two writers, and when they wrote. */
  #writers: readonly { readonly name: string; readonly atMs: number }[] = [];

  #leapt = { ms: 0, atMs: Number.NEGATIVE_INFINITY };

  constructor(simulation: Simulation) {
    this.#of = simulation;
  }

  /** Judges a list of writes before it is done: with it, the rows must have everything up to the new checkpoint. */
  sawWrite(writes: readonly Write[]): void {
    const moved = writes.find(({ table }) => table.name === PROGRESS.name);
    if (moved?.kind !== 'put') return;
    const { position, store_id } = moved.row as ProgressRow;
    const before = this.#progress();
    if (store_id === '' || before === undefined) return;
    if (position < before.position && before.store_id === store_id && moved.as === undefined)
      this.#of.violation(`the checkpoint of the accounts moves from ${before.position} back to ${position}`);
    this.#sawWriter(owners.getStore()?.name ?? '');
    if (position < before.position) return; // its guard fails
    if (!this.#readTo(position) && writes.length === 1) return; // a heartbeat
    for (const fault of this.#compare(position, writes))
      this.#of.violation(`with its checkpoint at ${position} ${fault}`);
  }

  /** Yields what is wrong while all is quiet. */
  *judge(): Generator<string, void> {
    const { stores, timeline } = this.#of;
    const { position = -1, complete_at } = this.#progress() ?? {};
    if (position < stores.log.head)
      yield `the rows of accounts are at ${position}, and the log's end is ${stores.log.head}`;
    if (complete_at == null || timeline.nowMs - complete_at > MAX_AGE_MS)
      yield `the rows of accounts are complete up to ${complete_at}, and it is ${timeline.nowMs}`;
    yield* this.#compare(Number.POSITIVE_INFINITY, []);
  }

  #progress(): ProgressRow | undefined {
    return this.#rows(PROGRESS)[0] as ProgressRow | undefined;
  }

  #rows(table: TablePlan): readonly unknown[] {
    return this.#of.stores.tables.rowsIn(STORE, table.name);
  }

  /** Compares the rows, with these writes, with the events up to a position. Accounts that are further on are left out. */
  #compare(position: number, writes: readonly Write[]): string[] {
    this.#readTo(position);
    const after = <R extends { readonly position: number }>(
      table: TablePlan,
      idOf: (row: R) => unknown,
    ): R[] => {
      const rows = new Map((this.#rows(table) as R[]).map((row) => [idOf(row), row]));
      for (const write of writes) {
        if (write.table.name !== table.name || write.kind !== 'put') continue;
        const row = write.row as unknown as R;
        if ((rows.get(idOf(row))?.position ?? -1) < row.position) rows.set(idOf(row), row);
      }
      return [...rows.values()];
    };
    const rows: AllRows = {
      accounts: after<AccountRow>(ACCOUNTS, ({ id }) => id),
      keys: after<KeyRow>(KEYS, ({ prefix }) => prefix),
      members: after<MemberRow>(MEMBERS, ({ id }) => id),
    };
    const isAhead = rows.accounts.some((row) => row.position > this.#read);
    return isAhead ? [] : [...rowsDiffer(rows, this.#model)];
  }

  /** Returns whether there were events of accounts. */
  #readTo(position: number): boolean {
    if (position < this.#read) {
      this.#model = new AccountModel();
      this.#revisions.clear();
      this.#read = 0;
    }
    let hasRead = false;
    for (const event of this.#of.stores.log.after(this.#read)) {
      if (event.position > position) break;
      this.#read = event.position;
      if (!event.stream.startsWith(ACCOUNT_STREAMS)) continue;
      this.#apply(event);
      hasRead = true;
    }
    return hasRead;
  }

  #apply({ data, metadata, ...event }: LoggedEvent): void {
    const revision = (this.#revisions.get(event.stream) ?? -1) + 1;
    this.#revisions.set(event.stream, revision);
    const parsed = { data: JSON.parse(data) as unknown, metadata: JSON.parse(metadata) as unknown };
    const recorded = { ...event, ...parsed, revision, id: '' };
    this.#model.apply({ ...recorded, decoded: readAccountEvent(recorded) });
  }

  /** Two followers that write in turns both have the lease. */
  #sawWriter(name: string): void {
    const { nowMs, leaptMs } = this.#of.timeline;
    if (leaptMs !== this.#leapt.ms) this.#leapt = { ms: leaptMs, atMs: nowMs };
    if (nowMs - this.#leapt.atMs < IN_TURNS_MS) this.#writers = []; // leases end while time leaps
    const [last, former] = this.#writers;
    const isBack = last !== undefined && last.name !== name && former?.name === name;
    if (isBack && nowMs - former.atMs < IN_TURNS_MS && this.#of.isCalmFor(CALM_MS))
      this.#of.violation(`${name} and ${last.name} both write the rows of accounts`);
    const others = this.#writers.filter((writer) => writer.name !== name);
    this.#writers = [{ name, atMs: nowMs }, ...others].slice(0, 2);
  }
}
