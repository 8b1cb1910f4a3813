import { dateTimeOrNull } from '../../domain/values/date-time.ts';
import { membersOf, occurredAt } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Tables } from '../../tables/tables.ts';
import { type ImportEntry, recordedBy } from '../import/import-log.ts';
import { transactionAfter } from '../import/import-transactions.ts';
import { NamedCorporates, type UnknownNames } from '../import/unknown-names.ts';
import { some } from './names.ts';

/** An import in a list. One that is still running has no end either, and so is `interrupted` until it has. */
export function importAnswer({ id, started, source, end }: ImportEntry) {
  const { actor } = membersOf(started.metadata);
  return {
    id,
    state: end === undefined ? 'interrupted' : 'ended',
    at: occurredAt(started),
    ended_at: dateTimeOrNull(end?.endedAtMs),
    actor: typeof actor === 'string' ? actor : null,
    source,
    recorded: end?.recorded ?? null,
    unchanged: end?.unchanged ?? null,
    refused: end?.refused ?? null,
    accounts: end?.accounts ?? null,
  };
}

/** The transactions that an import recorded for one account, as they are now. */
interface OfAccount {
  readonly account: number;
  /** Includes voided and cancelled transactions, but not erased ones. */
  readonly transactions: number;
  readonly visible: number;
}

/** An import with what is left of it now, according to its events. */
export async function importShown(
  entry: ImportEntry,
  store: Pick<EventStore, 'head' | 'subscribe' | 'readStream' | 'readStreams'>,
  tables: Pick<Tables, 'get'>,
) {
  const byAccount = new Map<number, OfAccount>();
  const named = new NamedCorporates();
  for await (const { history } of recordedBy(store, entry)) {
    const state = transactionAfter(history);
    if (state === 'unreadable' || state.kind === 'none') continue;
    const isVisible = state.kind === 'recorded';
    const { account_id: account } = isVisible ? state.recording.data : state.withdrawal.data;
    const { transactions, visible } = byAccount.get(account) ?? { transactions: 0, visible: 0 };
    byAccount.set(account, {
      account,
      transactions: transactions + 1,
      visible: visible + (isVisible ? 1 : 0),
    });
    if (isVisible) named.add(account, state.recording.data.corporate.id);
  }
  const by_account = [...byAccount.values()].sort((a, b) => a.account - b.account);
  const { accounts: unknown_accounts, corporates: unknown_corporates } = await named.unknown(tables);
  return { ...importAnswer(entry), by_account, unknown_accounts, unknown_corporates };
}

/** Names what customers can't see or ask for, and says what to do; `undefined` if accounts have everything. */
export function unknownNote({ accounts, corporates }: UnknownNames, importId: string): string | undefined {
  const [account] = accounts;
  const [first] = corporates;
  const names = [
    ...accounts.map((id) => `account ${id}`),
    ...corporates.map((each) => `corporate ${each.corporate} of account ${each.account}`),
  ];
  if (names.length === 0) return undefined;
  const what = account === undefined ? 'a corporate' : 'an account';
  const add =
    account === undefined
      ? `fuel account corporate ${first?.account} ${first?.corporate} --name NAME`
      : `fuel account open ${account} --name NAME`;
  const undo = `fuel import void ${importId} --reason REASON`;
  return `Unknown ${some(names)}. If ${what} is new: ${add}. If the file is wrong: ${undo}`;
}
