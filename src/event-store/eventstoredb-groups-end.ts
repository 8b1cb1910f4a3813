import type { EventStoreDBClient } from '@eventstore/db-client';
import type { Position } from './event-store.ts';
import type { EventStoreDbConnection } from './eventstoredb-connection.ts';
import { toPosition } from './eventstoredb-events.ts';
import { groupStream } from './eventstoredb-parked.ts';
import { readLast } from './eventstoredb-reads.ts';

/** Where the server keeps how far a group of `$all` is, and what it has parked: streams that `$all` does not show. */
const RECORDS = ['checkpoint', 'parked'] as const;
/** As gRPC has it. */
const NOT_FOUND = 5;

/** The position of the last record that the server made of its groups; 0 where there is none. */
export async function readGroupsEnd(connection: EventStoreDbConnection): Promise<Position> {
  const groups = await connection.use(groupNames);
  const streams = groups.flatMap((group) => RECORDS.map((record) => groupStream(group, record)));
  return Math.max(0, ...(await Promise.all(streams.map((stream) => readEnd(connection, stream)))));
}

/** Where there is no group at all, the server says that it did not find one. */
async function groupNames(client: EventStoreDBClient): Promise<string[]> {
  try {
    return (await client.listPersistentSubscriptionsToAll()).map(({ groupName }) => groupName);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === NOT_FOUND) return [];
    throw error;
  }
}

async function readEnd(connection: EventStoreDbConnection, stream: string): Promise<Position> {
  const last = await connection.use((client, givenUp) => readLast(client, stream, givenUp));
  const position = last?.position;
  return position === undefined ? 0 : toPosition(position.commit);
}
