import type { DirectoryAccount } from '../../../accounts/directory/fold/directory-entry.ts';
import { accountStream } from '../../../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../../../domain/operations-events.ts';
import { membersOf, recordedAtMs } from '../../../event-store/codec.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { RecordedEvent } from '../../../event-store/recorded-event.ts';
import { type AuditLine, auditLine } from '../../audit/audit.ts';

const MAX_EVENTS = 100;
const MAX_OPERATIONS = 50;

/** An event as an auditor reads it, with data that may hold secrets' ciphertexts: only named members are shown. */
export interface LoggedEvent extends AuditLine {
  readonly atMs: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The newest events of an account, newest first: at most a hundred, however many it has. */
export async function accountTail(
  store: Pick<EventStore, 'readStream'>,
  { id, revision }: Pick<DirectoryAccount, 'id' | 'revision'>,
): Promise<readonly LoggedEvent[]> {
  const fromRevision = Math.max(0, revision - MAX_EVENTS + 1);
  const events = await store.readStream(accountStream(id), { fromRevision });
  return events.slice(-MAX_EVENTS).reverse().map(loggedEvent);
}

/** The newest events of the stream `operations`: each call reads what was recorded since the last one. */
export class OperationsTail {
  readonly #store: Pick<EventStore, 'readStream'>;
  #next = 0;
  #kept: readonly LoggedEvent[] = [];

  constructor(store: Pick<EventStore, 'readStream'>) {
    this.#store = store;
  }

  /** Newest first. */
  async read(): Promise<readonly LoggedEvent[]> {
    const events = await this.#store.readStream(OPERATIONS_STREAM, { fromRevision: this.#next });
    const later = events.filter(({ revision }) => revision >= this.#next);
    this.#next = Math.max(this.#next, (later.at(-1)?.revision ?? -1) + 1);
    this.#kept = [...later.map(loggedEvent).reverse(), ...this.#kept].slice(0, MAX_OPERATIONS);
    return this.#kept;
  }
}

function loggedEvent(event: RecordedEvent): LoggedEvent {
  const line = auditLine(event);
  return { ...line, atMs: recordedAtMs(event), data: membersOf(line.data) };
}
