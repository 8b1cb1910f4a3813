import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { world } from '../base/world.ts';
import type { Account } from '../domain/account.ts';
import { type AccountCommand, decideAll } from '../domain/account-commands.ts';
import { type AccountEvent, accountStream } from '../domain/account-events.ts';
import { givenReason } from '../domain/decision.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { type Author, newEvent } from '../event-store/new-event.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import { readSkipped } from '../event-store/skipped-events.ts';
import { foldRecorded } from './read-account-event.ts';

const MAX_ATTEMPTS = 20;

export interface AccountWriter {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly author: Author;
  /** Returns true if the account's events say that nothing is to be recorded. It is asked at each decision. */
  readonly isDone?: (recorded: readonly RecordedEvent[]) => boolean;
}

export interface AccountChange {
  /** The events that were recorded; empty if the account already was as the commands ask. */
  readonly events: readonly AccountEvent[];
  readonly account: Account;
}

/**
 * Decides commands on the account's current state, in order, and records all their events or none. After a conflict
 * with another writer they are decided again. Throws `REFUSED` with the reason.
 */
export async function changeAccount(
  { author, ...writer }: AccountWriter,
  accountId: number,
  commands: readonly AccountCommand[],
): Promise<AccountChange> {
  const together = { ...author, correlationId: author.correlationId ?? world.randomUUID() };
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { account, events, revision, atMs } = await decideOnAccount(writer, accountId, commands);
    if (events.length === 0) return { events, account };
    const [result] = await writer.store.append([
      {
        stream: accountStream(accountId),
        expected: revision ?? 'none',
        events: events.map((event) => newEvent(event, together, atMs)),
      },
    ]);
    if (result?.kind === 'appended') return { events, account };
    if (result?.kind === 'erased') throw new FuelError('REFUSED', `account ${accountId} was erased`);
  }
  throw new FuelError('REFUSED', `account ${accountId} keeps being changed by others. Try again`);
}

/**
 * Records that a key is switched off although its account can't be read, so that nothing stands in the way of an operator who
 * has to stop a key. It counts once the account can be read again; until then nothing of the account is served.
 */
export async function switchOffUnread(
  { store, clock, author }: AccountWriter,
  command: Extract<AccountCommand, { type: 'SwitchKeyOff' }>,
): Promise<void> {
  const { accountId, prefix } = command;
  const data = { account_id: accountId, prefix, ...givenReason(command) };
  const event = { type: 'KeySwitchedOff', data } as const;
  const stream = accountStream(accountId);
  await store.append([{ stream, expected: 'any', events: [newEvent(event, author, clock.now())] }]);
}

/** Returns what `changeAccount` would record now. Throws `REFUSED` in the same cases. */
export async function decideOnAccount(
  { store, clock, isDone }: Omit<AccountWriter, 'author'>,
  accountId: number,
  commands: readonly AccountCommand[],
): Promise<AccountChange & { readonly revision: number | undefined; readonly atMs: number }> {
  const { account: before, recorded } = await readAccount(store, accountId);
  const [revision, atMs] = [recorded.at(-1)?.revision, clock.now()];
  if (before !== undefined && isDone?.(recorded)) return { account: before, events: [], revision, atMs };
  const decision = decideAll(commands, before, atMs);
  if (decision.kind === 'refused') throw new FuelError('REFUSED', decision.reason);
  return { ...decision, revision, atMs };
}

async function readAccount(store: EventStore, accountId: number) {
  const recorded = await store.readStream(accountStream(accountId));
  const folded = foldRecorded(recorded, await readSkipped(store));
  if ('fault' in folded) {
    throw new FuelError('REFUSED', `account ${accountId} can't be read: ${folded.fault}`);
  }
  return { account: folded.account, recorded };
}
