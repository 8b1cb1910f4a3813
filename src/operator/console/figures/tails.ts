import type { DirectoryAccount } from '../../../accounts/directory/fold/directory-entry.ts';
import { accountStream } from '../../../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../../../domain/operations-events.ts';
import { membersOf, printableData, recordedAtMs } from '../../../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../../../event-store/event-store.ts';

const MAX_EVENTS = 100;
const MAX_OPERATIONS = 50;

/** An event as the console reads it. */
export interface LoggedEvent {
  readonly revision: number;
  readonly atMs: number;
  readonly type: string;
  readonly actor: string | null;
  readonly command: string | null;
  /** May hold secrets' ciphertexts: only named members are shown. */
  readonly data: Readonly<Record<string, unknown>>;
}
export type Operation = Pick<LoggedEvent, 'atMs' | 'type' | 'actor' | 'data'>;

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
  const { actor, command } = membersOf(event.metadata);
  return {
    revision: event.revision,
    atMs: recordedAtMs(event),
    type: event.type,
    actor: typeof actor === 'string' ? actor : null,
    command: typeof command === 'string' ? command : null,
    data: membersOf(printableData(event)),
  };
}
