import { changeAccount } from '../../../accounts/change-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import type { Session } from './command.ts';
import { findKey, keyOf } from './known-names.ts';

export type KeyChange = (of: { readonly accountId: number; readonly prefix: string }) => AccountCommand;

/** Records a change of a key. Throws `REFUSED` if the key is unknown. */
export async function changeKey(
  { engines, writer }: Session,
  prefix: string,
  commandOf: KeyChange,
): Promise<{ changed: boolean; accountId: number; key: AccountKey }> {
  const accountId = (await findKey(engines, prefix)).entry.id;
  const command = commandOf({ accountId, prefix });
  const { events, account } = await changeAccount(writer(), accountId, [command]);
  return { changed: events.length > 0, accountId, key: keyOf(account, prefix) };
}

export const UNCHANGED = 'No change: already set';

/** Prints the document as it is after the change. People are told what was done, and what comes next. */
export function printChange({ out }: Session, changed: boolean, document: object, done: string): void {
  out.result({ changed, ...document }, changed ? done : UNCHANGED);
}
