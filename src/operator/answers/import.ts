import { formatDateTime } from '../../domain/values/date-time.ts';
import { membersOf, recordedAt } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type ImportEntry, recordedBy } from '../import/import-log.ts';
import { stateOf } from '../import/import-transactions.ts';
import { NamedCorporates, type UnknownNames } from '../import/unknown-names.ts';
import { some } from './names.ts';

/** An import in a list; the counts are `null` where it was killed, or is not over yet. */
export function importAnswer({ id, started, source, end }: ImportEntry) {
  const { actor } = membersOf(started.metadata);
  return {
    id,
    at: recordedAt(started),
    ended_at: end === undefined ? null : formatDateTime(end.endedAtMs),
    actor: typeof actor === 'string' ? actor : null,
    source,
    recorded: end?.recorded ?? null,
    unchanged: end?.unchanged ?? null,
    refused: end?.refused ?? null,
    accounts: end?.accounts ?? null,
  };
}

/** What an import recorded of one account, as it is now. */
interface OfAccount {
  readonly account: number;
  /** With those that were voided or cancelled, without those that were erased. */
  readonly transactions: number;
  readonly visible: number;
}

/** An import with what there is of it now, by its events. */
export async function importShown(store: Pick<EventStore, 'readStream' | 'readStreams'>, entry: ImportEntry) {
  const byAccount = new Map<number, OfAccount>();
  const named = new NamedCorporates();
  for await (const { history } of recordedBy(store, entry)) {
    const state = stateOf(history);
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
  const { accounts: unknown_accounts, corporates: unknown_corporates } = await named.unknown(store);
  return { ...importAnswer(entry), by_account, unknown_accounts, unknown_corporates };
}

/** What customers can not see or ask for, and what to do; `undefined` where the directory has it all. */
export function unknownNote(
  { accounts, corporates }: UnknownNames,
  importId: string | undefined,
): string | undefined {
  const [account] = accounts;
  const [first] = corporates;
  const names = [
    ...accounts.map((id) => `account ${id}`),
    ...corporates.map((each) => `corporate ${each.corporate} of account ${each.account}`),
  ];
  if (names.length === 0) return undefined;
  const add =
    account === undefined
      ? `fuel account corporate ${first?.account} ${first?.corporate} --name NAME`
      : `fuel account open ${account} --name NAME`;
  const undo =
    importId === undefined ? '' : `; where it is a mistake, fuel import void ${importId} --reason REASON`;
  return `warning: the directory lacks ${some(names)}: where that is right, ${add}${undo}`;
}
