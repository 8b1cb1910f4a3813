import type { Account } from '../../../src/domain/account.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { draftOf, evolveDraft } from '../../../src/domain/account-evolve.ts';

/**
 * The account after more events, recorded together; the one given stays as it is. `atMs` is when that was. Throws an
 * `EventOrderFault` where one can not follow those before it.
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

/** The account after all events of its stream, `undefined` where there is none. */
export function foldAccount(
  history: Iterable<{ readonly event: AccountEvent; readonly atMs: number }>,
): Account | undefined {
  let account: Account | undefined;
  for (const { event, atMs } of history) account = evolve(account, [event], atMs);
  return account;
}
