import type { Account } from '../../../src/domain/account.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { draftOf, evolveDraft } from '../../../src/domain/account-evolve.ts';

/**
 * Returns the account after more events, recorded together at `atMs`. The given account stays as it is. Throws an
 * `EventOrderFault` if an event can't follow those before it.
 */
export function evolve(
  account: Account | undefined,
  events: readonly AccountEvent[],
  atMs: number,
): Account | undefined {
  let draft = account === undefined ? undefined : draftOf(account);
  for (const event of events) draft = evolveDraft(draft, event, atMs);
  return draft;
}

/** Returns the account after all events of its stream; `undefined` if there are none. */
export function foldAccount(
  history: Iterable<{ readonly event: AccountEvent; readonly atMs: number }>,
): Account | undefined {
  let account: Account | undefined;
  for (const { event, atMs } of history) account = evolve(account, [event], atMs);
  return account;
}
