import type { Command } from 'commander';
import { changeAccount } from '../../../accounts/change-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import { accountSummary } from '../../answers/account.ts';
import { keyAnswer } from '../../answers/key.ts';
import { requirePrefix } from '../../answers/names.ts';
import { addCommand, type Definition, type Session } from './command.ts';
import { findKey, keyOf } from './known-names.ts';
import { idOption } from './options.ts';

/** A command of the domain without whose it is. */
type Unaddressed = AccountCommand extends infer C
  ? C extends unknown
    ? Omit<C, 'accountId' | 'prefix'>
    : never
  : never;

type Change<O> = Omit<Definition<O>, 'changes' | 'work'> & {
  /** From the arguments after the first, and the options. Wrong values are wrong usage, whether the name is known or not. */
  readonly change: (values: readonly string[], options: O) => Unaddressed;
};

/** `<id>` is the first argument. */
export function addAccountChange<O>(parent: Command, { change, ...definition }: Change<O>): void {
  addCommand<O>(parent, {
    ...definition,
    changes: true,
    async work(session, [id = '', ...values], options) {
      const accountId = idOption(id);
      const { changed, account } = await record(session, accountId, change(values, options));
      done(session, changed, accountSummary(account));
      return 0;
    },
  });
}

type KeyChange<O> = Omit<Change<O>, 'change'> & {
  /** As that of an account. */
  readonly change: (
    values: readonly string[],
    options: O,
    key: { readonly session: Session; readonly prefix: string },
  ) => Unaddressed | Promise<Unaddressed>;
  /** Done by the command too, so that it holds when the command returns, even if no process runs. */
  readonly afterwards?: (session: Session, prefix: string) => Promise<unknown>;
  /** As `key show` prints it, unless given. */
  readonly answer?: (accountId: number, key: AccountKey, session: Session) => object | Promise<object>;
};

/** `<prefix>` is the first argument. */
export function addKeyChange<O>(
  parent: Command,
  { change, afterwards, answer = keyAnswer, ...definition }: KeyChange<O>,
): void {
  addCommand<O>(parent, {
    ...definition,
    changes: true,
    async work(session, [prefix = '', ...values], options) {
      requirePrefix(prefix);
      const unaddressed = await change(values, options, { session, prefix });
      const accountId = (await findKey(session.engines, prefix)).entry.id;
      const { changed, account } = await record(session, accountId, { ...unaddressed, prefix });
      if (changed) await afterwards?.(session, prefix);
      done(session, changed, await answer(accountId, keyOf(account, prefix), session));
      return 0;
    },
  });
}

function record({ engines, clock, author }: Session, accountId: number, change: object) {
  const command = { ...change, accountId } as AccountCommand;
  return changeAccount({ store: engines.store(), clock, author }, accountId, [command]);
}

function done({ out }: Session, changed: boolean, document: object): void {
  out.result({ changed, ...document }, changed ? 'done' : 'nothing to change: it is so already');
}
