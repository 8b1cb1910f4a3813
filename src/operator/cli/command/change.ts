import type { Command } from 'commander';
import { changeAccount } from '../../../accounts/change-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountCommand } from '../../../domain/account-commands.ts';
import { accountSummary } from '../../answers/account.ts';
import { readId } from '../../answers/filters.ts';
import { keyAnswer } from '../../answers/key.ts';
import { readPrefix } from '../../answers/names.ts';
import {
  type Arguments,
  addCommand,
  type Definition,
  type NoOptions,
  type Readers,
  type Session,
} from './command.ts';
import { findKey, keyOf } from './known-names.ts';
import type { Options, Values } from './options.ts';

/** A command of the domain without whose it is. */
type Unaddressed = AccountCommand extends infer C
  ? C extends unknown
    ? Omit<C, 'accountId' | 'prefix'>
    : never
  : never;

type Change<A extends Arguments, O extends Options> = Omit<Definition<A, O>, 'changes' | 'work'> & {
  /** From the arguments after the first, which `args` reads, and the options. */
  readonly change: (values: A, options: Values<O>) => Unaddressed;
};

/** `<id>` is the first argument. */
export function addAccountChange<A extends Arguments = [], O extends Options = NoOptions>(
  parent: Command,
  { change, args, ...definition }: Change<A, O>,
): void {
  addCommand(parent, {
    ...definition,
    args: [readId, ...rest(args)],
    changes: true,
    async work(session, [accountId, ...values], options) {
      const command = change(values as unknown as A, options as Values<O>);
      const { changed, account } = await record(session, accountId, command);
      done(session, changed, accountSummary(account));
      return 0;
    },
  });
}

type KeyChange<A extends Arguments, O extends Options> = Omit<Change<A, O>, 'change'> & {
  /** As that of an account. */
  readonly change: (
    values: A,
    options: Values<O>,
    key: { readonly session: Session; readonly prefix: string },
  ) => Unaddressed | Promise<Unaddressed>;
  /** Done by the command too, so that it holds when the command returns, even if no process runs. */
  readonly afterwards?: (session: Session, prefix: string) => Promise<unknown>;
  /** As `key show` prints it, unless given. */
  readonly answer?: (accountId: number, key: AccountKey, session: Session) => object | Promise<object>;
};

/** `<prefix>` is the first argument. */
export function addKeyChange<A extends Arguments = [], O extends Options = NoOptions>(
  parent: Command,
  { change, args, afterwards, answer = keyAnswer, ...definition }: KeyChange<A, O>,
): void {
  addCommand(parent, {
    ...definition,
    args: [readPrefix, ...rest(args)],
    changes: true,
    async work(session, [prefix, ...values], options) {
      const key = { session, prefix };
      const unaddressed = await change(values as unknown as A, options as Values<O>, key);
      const accountId = (await findKey(session.engines, prefix)).entry.id;
      const { changed, account } = await record(session, accountId, { ...unaddressed, prefix });
      if (changed) await afterwards?.(session, prefix);
      done(session, changed, await answer(accountId, keyOf(account, prefix), session));
      return 0;
    },
  });
}

function rest<A extends Arguments>(readers: Readers<A> | undefined): readonly ((text: string) => unknown)[] {
  return readers ?? [];
}

function record({ writer }: Session, accountId: number, change: object) {
  return changeAccount(writer(), accountId, [{ ...change, accountId } as AccountCommand]);
}

function done({ out }: Session, changed: boolean, document: object): void {
  out.result({ changed, ...document }, changed ? 'done' : 'nothing to change: it is so already');
}
