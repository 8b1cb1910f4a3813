import type { DirectoryAccount } from '../../../../projections/directory-entry.ts';
import { accountStream } from '../../../domain/account-events.ts';
import { membersOf, printableData, recordedAtMs } from '../../../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../../../event-store/event-store.ts';

const MAX_EVENTS = 100;

/** An event of an account as the console reads it. */
export interface AccountEntry {
  readonly revision: number;
  readonly atMs: number;
  readonly type: string;
  readonly actor: string | null;
  readonly command: string | null;
  /** May hold secrets' ciphertexts: only named members are shown. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** The newest events of an account, newest first: at most a hundred, however many it has. */
export async function accountTail(
  store: Pick<EventStore, 'readStream'>,
  { id, revision }: Pick<DirectoryAccount, 'id' | 'revision'>,
): Promise<readonly AccountEntry[]> {
  const fromRevision = Math.max(0, revision - MAX_EVENTS + 1);
  const events = await store.readStream(accountStream(id), { fromRevision });
  return events.slice(-MAX_EVENTS).reverse().map(entryOf);
}

function entryOf(event: RecordedEvent): AccountEntry {
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
