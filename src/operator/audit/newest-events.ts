import type { StoredAccount } from '../../accounts/rows/stored-account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { authorOf, membersOf, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { auditLine } from './audit.ts';

const MAX_ACCOUNT_EVENTS = 100;

/** An event as an auditor reads it. Its data may hold encrypted secrets: a page shows only some members of it. */
export type LoggedEvent = ReturnType<typeof loggedEvent>;

/** Reads the newest hundred events of an account, newest first. */
export async function accountTail(
  store: Pick<EventStore, 'readStream'>,
  { id, revision }: Pick<StoredAccount, 'id' | 'revision'>,
): Promise<readonly LoggedEvent[]> {
  const fromRevision = Math.max(0, revision - MAX_ACCOUNT_EVENTS + 1);
  const events = await store.readStream(accountStream(id), { fromRevision });
  return events.slice(-MAX_ACCOUNT_EVENTS).reverse().map(loggedEvent);
}

/** Reads the newest events of the stream `operations`, and the newest of each type however old it is, newest first. */
export async function newestOperations(
  store: Pick<EventStore, 'readStream'>,
): Promise<readonly LoggedEvent[]> {
  return (await operationsOf(store)).newest.map(loggedEvent);
}

function loggedEvent(event: RecordedEvent) {
  const line = auditLine(event);
  return { ...line, atMs: occurredAtMs(event), data: membersOf(line.data) };
}

/** The members of account events that a page shows: nothing secret, and nothing that grows. */
const ACCOUNT_MEMBERS: readonly string[] = [
  'prefix',
  'reason',
  'url',
  'profile',
  'from',
  'to',
  'name',
  'corporate_id',
  'corporate_group_id',
  'failed_in_a_row',
  'failing_since',
  'last_answers',
];

/** An event of an account in a list. */
export function accountEventLine(event: LoggedEvent) {
  return eventLine(event, (name) => ACCOUNT_MEMBERS.includes(name));
}

/** An event of the stream `operations` in a list: members that are texts or numbers are shown. */
export function operationLine(event: LoggedEvent) {
  return eventLine(event, (_, value) => ['string', 'number'].includes(typeof value));
}

function eventLine(event: LoggedEvent, isShown: (name: string, value: unknown) => boolean) {
  const { at, type, command, data } = event;
  const details = Object.entries(data).filter(([name, value]) => isShown(name, value));
  return {
    at,
    event: type,
    by: authorOf({ metadata: event }),
    command,
    details: Object.fromEntries(details),
  };
}
