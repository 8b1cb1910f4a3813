import { madeFrom } from '../../accounts/rows/progress.ts';
import { readProgress } from '../../accounts/rows/read-rows.ts';
import { ownersOfRows } from '../../accounts/rows/stored-account.ts';
import { ACCOUNTS } from '../../accounts/rows/tables.ts';
import { accountsOfEvents } from '../../accounts/rows/writes-of.ts';
import type { Clock } from '../../base/clock.ts';
import { errorKind, FuelError } from '../../base/errors.ts';
import type { Rest } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { mismatchOf, storeIdentity } from '../../event-store/store-identity.ts';
import type { Tables } from '../../tables/tables.ts';
import { IdSet } from '../verify/id-set.ts';
import { type AccountDifference, type JudgedAccounts, judgeAccounts } from './judge-accounts.ts';

const ACCOUNTS_A_READ = 100;
/** Rows that the follower is writing are right at the next look. */
const MAX_LOOKS = 3;
const LOOK_AGAIN_MS = 500;

export interface VerifyAccountsOptions {
  readonly store: EventStore;
  readonly tables: Tables;
  readonly clock: Clock;
  readonly author: Author;
  /** The only account to verify; all unless given. */
  readonly accountId?: number | undefined;
  /** True to make the rows that differ as they should be. */
  readonly repair: boolean;
  readonly rest?: Rest | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (accounts: number) => void;
}

export interface AccountsAgreement {
  readonly checked: number;
  readonly differences: readonly AccountDifference[];
  /** Those that were not repaired. */
  readonly remaining: readonly AccountDifference[];
  /** Damaged events. Nothing of their accounts is judged. */
  readonly damage: readonly Damage[];
}

/**
 * Compares the rows of accounts with what their streams call for, and repairs them if asked to, each account by itself while
 * all are served. It can be interrupted at any time and repeated. Rejects with `REFUSED` while the rows are being made.
 */
export async function verifyAccounts(options: VerifyAccountsOptions): Promise<AccountsAgreement> {
  const { store, clock, author, repair, rest, signal, onProgress } = options;
  await assertMade(options);
  const differences: AccountDifference[] = [];
  const remaining: AccountDifference[] = [];
  const damage: Damage[] = [];
  let checked = 0;
  for await (const ids of idsOf(options)) {
    signal?.throwIfAborted();
    const found = await lookAgain(ids, options);
    const left = repair ? await repairAccounts(found.differences, options) : found.differences;
    for (const each of found.differences) differences.push(each);
    for (const each of found.damage) damage.push(each);
    for (const each of left) remaining.push(each);
    checked += ids.length;
    onProgress?.(checked);
    await rest?.();
  }
  const repaired = differences.length - remaining.length;
  const event = { type: 'AgreementRepaired', data: { what: 'accounts', repaired } } as const;
  if (repaired > 0) await recordOperations(store, [event], { author, clock });
  return { checked, differences, remaining, damage };
}

/** Folds the streams of these accounts again, and makes their rows as they should be. */
export async function refoldAccounts(
  ids: readonly number[],
  place: Pick<VerifyAccountsOptions, 'store' | 'tables'>,
): Promise<void> {
  await repairAccounts((await judgeAccounts(ids, place)).differences, place);
}

/** Makes the rows of these accounts as they should be. Returns what still differs. */
async function repairAccounts(
  found: readonly AccountDifference[],
  place: Pick<VerifyAccountsOptions, 'store' | 'tables'>,
): Promise<readonly AccountDifference[]> {
  if (found.length === 0) return [];
  for (const { repairs } of found) {
    try {
      await place.tables.write(repairs);
    } catch (error) {
      if (errorKind(error) !== 'refused') throw error; // otherwise the next look finds the difference again
    }
  }
  const left = await judgeAccounts(
    found.map(({ accountId }) => accountId),
    place,
  );
  return left.differences;
}

/** Returns what differs in several looks, and what is damaged. */
async function lookAgain(
  ids: readonly number[],
  place: Pick<VerifyAccountsOptions, 'store' | 'tables'>,
): Promise<JudgedAccounts> {
  const first = await judgeAccounts(ids, place);
  let { differences } = first;
  for (let looks = 1; looks < MAX_LOOKS && differences.length > 0; looks++) {
    await world.sleep(LOOK_AGAIN_MS);
    const found = differences.map(({ accountId }) => accountId);
    differences = (await judgeAccounts(found, place)).differences;
  }
  return { ...first, differences };
}

/** Yields the ids of accounts that have a row, then of those that only other rows or events name. */
async function* idsOf({
  store,
  tables,
  accountId,
  signal,
}: VerifyAccountsOptions): AsyncGenerator<readonly number[], void> {
  if (accountId !== undefined) return yield [accountId];
  const seen = new IdSet();
  for (let after = { id: -1 }; ; ) {
    const rows = await tables.find(ACCOUNTS, {
      index: 'key',
      after,
      limit: ACCOUNTS_A_READ,
      columns: ['id'],
    });
    const last = rows.at(-1);
    if (last === undefined) break;
    for (const { id } of rows) seen.add(id);
    yield rows.map(({ id }) => id);
    after = last;
  }
  const isNew = (id: number): boolean => {
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  };
  for await (const id of ownersOfRows(tables)) if (isNew(id)) yield [id];
  for await (const { events } of readToEnd(store, { prefixes: [ACCOUNT_STREAMS], after: 0, signal })) {
    const others = accountsOfEvents(events).filter(isNew);
    for (let at = 0; at < others.length; at += ACCOUNTS_A_READ) yield others.slice(at, at + ACCOUNTS_A_READ);
  }
}

async function assertMade({ store, tables, clock }: VerifyAccountsOptions): Promise<void> {
  const progress = await readProgress(tables);
  const place = { store, storeId: await storeIdentity(store, clock) };
  const why = progress === undefined ? 'there are none yet' : await mismatchOf(madeFrom(progress), place);
  if (why !== undefined)
    throw new FuelError(
      'REFUSED',
      `The rows of accounts cannot be verified: ${why}. \`fuel serve\` makes them`,
    );
}
