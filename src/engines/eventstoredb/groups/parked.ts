import type { ResolvedEvent } from '@eventstore/db-client';
import { membersOf } from '../../../event-store/codec.ts';
import type { ParkedEvent } from '../../../event-store/event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { groupStream, toRecorded } from '../driver/events.ts';
import { readEnd, readStream } from '../log/reads.ts';

/** The server puts this before the reason that a consumer gives. */
const REASON_PREFIX = "Client explicitly NAK'ed message.\n";

/** What a group has parked, oldest first, without events that were erased since. */
export async function readParked(
  connection: EventStoreDbConnection,
  group: string,
  limit?: number,
): Promise<ParkedEvent[]> {
  const range = { resolveLinkTos: true, ...(limit === undefined ? {} : { maxCount: limit }) };
  const parked = await readStream(connection, groupStream(group, 'parked'), parkedOf, range);
  return parked === 'erased' ? [] : parked;
}

/**
 * The revision of the first or the last link in the group's parked stream; undefined where that is empty. A replay
 * truncates the stream, and it has no gaps.
 */
export async function parkedLinkAt(
  connection: EventStoreDbConnection,
  group: string,
  end: 'first' | 'last',
): Promise<number | undefined> {
  const stream = groupStream(group, 'parked');
  const link = await connection.use((client, cancelled) => readEnd(client, { stream, end }, cancelled));
  return link?.revision;
}

function parkedOf({ event, link }: ResolvedEvent): ParkedEvent | undefined {
  if (event === undefined || link === undefined) return undefined;
  const { reason = '' } = membersOf(toRecorded(link).metadata) as { readonly reason?: string };
  return {
    event: toRecorded(event),
    reason: reason.startsWith(REASON_PREFIX) ? reason.slice(REASON_PREFIX.length) : reason,
    parkedAtMs: link.created.getTime(),
  };
}
