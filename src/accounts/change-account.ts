import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import type { Account } from '../domain/account.ts';
import { type AccountCommand, decide } from '../domain/account-commands.ts';
import { type AccountEvent, accountStream } from '../domain/account-events.ts';
import { evolve } from '../domain/account-evolve.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { type Author, newEvent } from '../event-store/new-event.ts';
import { readSkipped } from '../event-store/skipped-events.ts';
import { foldRecorded } from './directory/apply-to-directory.ts';

const MAX_ATTEMPTS = 20;

export interface AccountWriter {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly author: Author;
}

export interface AccountChange {
  /** Whether anything was recorded. */
  readonly changed: boolean;
  readonly account: Account;
}

/**
 * Decides commands on the account's present state, in order, and records all their events or none. After a conflict
 * with another writer they are decided again. Throws `REFUSED` with the reason.
 */
export async function changeAccount(
  { store, clock, author }: AccountWriter,
  accountId: number,
  commands: readonly AccountCommand[],
): Promise<AccountChange> {
  const together = { ...author, correlationId: author.correlationId ?? randomUUID() };
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { account: before, revision } = await readAccount(store, accountId);
    const atMs = clock.now();
    const { account, events } = decideAll(commands, before, atMs);
    if (events.length === 0) return { changed: false, account };
    const [result] = await store.append([
      {
        stream: accountStream(accountId),
        expected: revision ?? 'none',
        events: events.map((event) => newEvent(event, together, atMs)),
      },
    ]);
    if (result?.kind === 'appended') return { changed: true, account };
    if (result?.kind === 'erased') throw new FuelError('REFUSED', `account ${accountId} was erased`);
  }
  throw new FuelError('REFUSED', `account ${accountId} is being changed by others all the time: try again`);
}

function decideAll(commands: readonly AccountCommand[], before: Account | undefined, atMs: number) {
  const events: AccountEvent[] = [];
  let account = before;
  for (const command of commands) {
    const decision = decide(command, account);
    if (decision.kind === 'refused') throw new FuelError('REFUSED', decision.reason);
    if (decision.kind === 'unchanged') continue;
    account = evolve(account, decision.events, atMs);
    for (const event of decision.events) events.push(event);
  }
  if (account === undefined) throw new Error('commands on an account that is not open were not refused');
  return { account, events };
}

async function readAccount(store: EventStore, accountId: number) {
  const recorded = await store.readStream(accountStream(accountId));
  const folded = foldRecorded(recorded, await readSkipped(store));
  if ('fault' in folded) {
    throw new FuelError('REFUSED', `account ${accountId} can't be read: ${folded.fault}`);
  }
  return { account: folded.account, revision: recorded.at(-1)?.revision };
}
