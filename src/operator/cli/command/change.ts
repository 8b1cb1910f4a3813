import { changeAccount } from '../../../accounts/change-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import type { Session } from './command.ts';
import { keyOf, knownKey } from './known-names.ts';

export type KeyChange = (of: { readonly accountId: number; readonly prefix: string }) => AccountCommand;

/** Records a change of a key. Throws `REFUSED` if the key is unknown. */
export async function changeKey(
  session: Session,
  prefix: string,
  commandOf: KeyChange,
): Promise<{ changed: boolean; accountId: number; key: AccountKey }> {
  const { accountId } = await knownKey(session, prefix);
  const command = commandOf({ accountId, prefix });
  const { events, account } = await changeAccount(session.writer(), accountId, [command]);
  return { changed: events.length > 0, accountId, key: keyOf(account, prefix) };
}

export const UNCHANGED = 'No change: already set';

/** Prints the document as it is after the change. People are told what was done, and what comes next. */
export function printChange({ out }: Session, changed: boolean, document: object, done: string): void {
  out.result({ changed, ...document }, changed ? done : UNCHANGED);
}
