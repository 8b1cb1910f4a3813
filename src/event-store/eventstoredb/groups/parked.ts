import type { ResolvedEvent } from '@eventstore/db-client';
import type { ParkedEvent } from '../../event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { groupStream, toRecorded, toSafe } from '../driver/events.ts';
import { all, knownStream, readEnd } from '../log/reads.ts';

/** What the server puts before the reason that a consumer gives. */
const BY_CONSUMER = "Client explicitly NAK'ed message.\n";

/** What a group has parked, oldest first, without what was erased since. */
export async function readParked(connection: EventStoreDbConnection, group: string): Promise<ParkedEvent[]> {
  const stream = groupStream(group, 'parked');
  const links = await knownStream(() =>
    connection.use((client, givenUp) => all(client.readStream(stream, { resolveLinkTos: true }), givenUp)),
  );
  return links === 'erased' ? [] : links.flatMap(parkedOf);
}

/**
 * The revision of the first or the last link in the server's own list of what a group has parked; undefined where it
 * is empty. The server cuts the list off after what was replayed, and leaves no gap in it.
 */
export async function parkedLinkAt(
  connection: EventStoreDbConnection,
  group: string,
  end: 'first' | 'last',
): Promise<number | undefined> {
  const stream = groupStream(group, 'parked');
  const link = await connection.use((client, givenUp) => readEnd(client, { stream, end }, givenUp));
  return link === undefined ? undefined : toSafe(link.revision);
}

function parkedOf({ event, link }: ResolvedEvent): ParkedEvent[] {
  if (event === undefined || link === undefined) return [];
  const { reason = '' } = (link.metadata ?? {}) as { readonly reason?: string };
  return [
    {
      event: toRecorded(event),
      reason: reason.startsWith(BY_CONSUMER) ? reason.slice(BY_CONSUMER.length) : reason,
      parkedAtMs: link.created.getTime(),
    },
  ];
}
