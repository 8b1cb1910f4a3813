import type { ResolvedEvent } from '@eventstore/db-client';
import type { ParkedEvent } from './event-store.ts';
import type { EventStoreDbConnection } from './eventstoredb-connection.ts';
import { toRecorded, toSafe } from './eventstoredb-events.ts';
import { all, knownStream } from './eventstoredb-reads.ts';

/** What the server puts before the reason that a consumer gives. */
const BY_CONSUMER = "Client explicitly NAK'ed message.\n";

export interface Parked {
  /** Without those whose stream was erased. */
  readonly events: ParkedEvent[];
  /** With them. */
  readonly count: number;
  /** Revisions in the server's own list; undefined where it is empty. */
  readonly firstLink: number | undefined;
  readonly lastLink: number | undefined;
}

/** Where the server keeps how far a group is, or what it has parked. */
export function groupStream(group: string, record: 'checkpoint' | 'parked'): string {
  return `$persistentsubscription-$all::${group}-${record}`;
}

/** What a group has set aside, oldest first. The server cuts its list off behind what was replayed. */
export async function readParked(connection: EventStoreDbConnection, group: string): Promise<Parked> {
  const stream = groupStream(group, 'parked');
  const found = await knownStream(() =>
    connection.use((client, givenUp) => all(client.readStream(stream, { resolveLinkTos: true }), givenUp)),
  );
  const links = found === 'erased' ? [] : found;
  return {
    events: links.flatMap(parkedOf),
    count: links.length,
    firstLink: revisionOf(links.at(0)),
    lastLink: revisionOf(links.at(-1)),
  };
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

/** A link whose event is gone is handed out as the event itself. */
function revisionOf(resolved: ResolvedEvent | undefined): number | undefined {
  const record = resolved?.link ?? resolved?.event;
  return record === undefined ? undefined : toSafe(record.revision);
}
