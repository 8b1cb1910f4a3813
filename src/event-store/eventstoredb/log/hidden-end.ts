import type { EventStoreDBClient } from '@eventstore/db-client';
import type { Position } from '../../event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { groupStream, toPosition } from '../driver/events.ts';
import { readEnd } from './reads.ts';

/** Written by each node that becomes the leader. */
const EPOCHS = '$epoch-information';
/** How far a group of `$all` is, and what it has parked. */
const RECORDS = ['checkpoint', 'parked'] as const;
/** As gRPC has it. */
const NOT_FOUND = 5;

/** The position of the last record that `$all` does not show to its readers; 0 where there is none. */
export async function readHiddenEnd(connection: EventStoreDbConnection): Promise<Position> {
  const groups = await connection.use(groupNames);
  const streams = groups.flatMap((group) => RECORDS.map((record) => groupStream(group, record)));
  const ends = await Promise.all([EPOCHS, ...streams].map((stream) => endOf(connection, stream)));
  return ends.reduce((last, end) => Math.max(last, end), 0);
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

async function endOf(connection: EventStoreDbConnection, stream: string): Promise<Position> {
  const last = await connection.use((client, givenUp) => readEnd(client, { stream, end: 'last' }, givenUp));
  return last?.position === undefined ? 0 : toPosition(last.position.commit);
}
