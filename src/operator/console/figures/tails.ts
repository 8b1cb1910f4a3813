import type { DirectoryAccount } from '../../../accounts/directory/fold/directory-entry.ts';
import { accountStream } from '../../../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../../../domain/operations-events.ts';
import { authorOf, membersOf, recordedAtMs } from '../../../event-store/codec.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { RecordedEvent } from '../../../event-store/recorded-event.ts';
import { auditLine } from '../../audit/audit.ts';

const MAX_EVENTS = 100;
const MAX_OPERATIONS = 50;

/** An event as an auditor reads it, with data that may hold secrets' ciphertexts: only named members are shown. */
export type LoggedEvent = ReturnType<typeof loggedEvent>;

/** The newest events of an account, newest first: at most a hundred, however many it has. */
export async function accountTail(
  store: Pick<EventStore, 'readStream'>,
  { id, revision }: Pick<DirectoryAccount, 'id' | 'revision'>,
): Promise<readonly LoggedEvent[]> {
  const fromRevision = Math.max(0, revision - MAX_EVENTS + 1);
  const events = await store.readStream(accountStream(id), { fromRevision });
  return events.slice(-MAX_EVENTS).reverse().map(loggedEvent);
}

/** Reads the newest events of the stream `operations`, newest first: each time what was recorded since the last one. */
export function operationsTail(store: Pick<EventStore, 'readStream'>): () => Promise<readonly LoggedEvent[]> {
  let kept: readonly LoggedEvent[] = [];
  const next = (): number => (kept[0]?.revision ?? -1) + 1;
  return async () => {
    const events = await store.readStream(OPERATIONS_STREAM, { fromRevision: next() });
    const later = events.filter(({ revision }) => revision >= next());
    kept = [...later.map(loggedEvent).reverse(), ...kept].slice(0, MAX_OPERATIONS);
    return kept;
  };
}

function loggedEvent(event: RecordedEvent) {
  const line = auditLine(event);
  return { ...line, atMs: recordedAtMs(event), data: membersOf(line.data) };
}

/** Members of an account's events that are shown: nothing secret, and nothing that grows. */
export const ACCOUNT_MEMBERS: readonly string[] = [
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

/** An event as a page lists it, with these members of its data, or with those that are text or numbers. */
export function loggedRow(event: LoggedEvent, names?: readonly string[]) {
  const { at, type, command, data } = event;
  const details = Object.entries(data).filter(
    ([name, value]) => names?.includes(name) ?? ['string', 'number'].includes(typeof value),
  );
  return {
    at,
    event: type,
    by: authorOf({ metadata: event }),
    command,
    details: Object.fromEntries(details),
  };
}
