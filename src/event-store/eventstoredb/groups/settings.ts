import {
  type EventStoreDBClient,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionExistsError,
  type PersistentSubscriptionToAllSettings,
  ROUND_ROBIN,
  START,
  type RecordedEvent as StoredEvent,
  UNBOUNDED,
} from '@eventstore/db-client';
import { FuelError } from '../../../errors.ts';
import { pause } from '../../../pause.ts';
import type { GroupSettings } from '../../event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { groupStream } from '../driver/events.ts';
import { readEnd } from '../log/reads.ts';
import { readParked } from './parked.ts';

const MAX_RETRIES = 2 ** 31 - 1; // the server counts them in 32 bits
/** Where the server keeps the groups' filters, which it tells nowhere else. */
const CONFIGURATION_STREAM = '$persistentSubscriptionConfig';

/** While the streams of a deleted group are waited for. */
const DELETED_LOOK_MS = 20;

/** Settings that are the same for every group. */
const FIXED = {
  startFrom: START,
  resolveLinkTos: false, // there are no links among the events
  extraStatistics: false, // a measurement of each event, kept in memory
  // What was acknowledged is handed out again after a restart unless a checkpoint covers it: one a second, be it
  // for a single event, and one at least for every thousand.
  checkPointAfter: 1_000,
  checkPointLowerBound: 1,
  checkPointUpperBound: 1_000,
  maxSubscriberCount: UNBOUNDED, // as many processes as there are
  // Read in pages that are worth a round trip, with several ahead of the consumers.
  readBatchSize: 500,
  historyBufferSize: 5_000,
  liveBufferSize: 5_000,
  consumerStrategyName: ROUND_ROBIN, // no event needs a certain consumer, and none may wait for a busy one
} as const;

export interface GroupLimits {
  readonly ackTimeoutMs: number;
  /** How often an event is handed out at most. */
  readonly maxRetries: number;
}

/**
 * As `PersistentSubscriptions.ensureGroup`. The group has no filter on the server: with one, the server would lose
 * events when it loads the group again (0049). So `settings.prefixes` are applied by the consumers, and a group that
 * an earlier version made with a filter is replaced.
 */
export async function ensureGroup(
  connection: EventStoreDbConnection,
  group: string,
  settings: GroupSettings,
): Promise<void> {
  const wanted = settingsOf(settings);
  const present = await connection.use((client) => settingsAt(client, group));
  if (present === undefined) {
    await connection.use((client) => create(client, group, wanted));
  } else if (await connection.use((client, givenUp) => hasFilter(client, group, givenUp))) {
    await replace(connection, group, wanted);
  } else if (differs(present, wanted)) {
    await connection.use((client) => client.updatePersistentSubscriptionToAll(group, wanted));
  }
}

/** What the group's consumers go by. Rejects with `REFUSED` where there is no such group. */
export async function limitsOf(
  connection: EventStoreDbConnection,
  group: string,
  signal: AbortSignal,
): Promise<GroupLimits> {
  const settings = await connection.use((client) => settingsAt(client, group), { signal });
  if (settings === undefined) throw notEnsured(group);
  return { ackTimeoutMs: settings.messageTimeout, maxRetries: settings.maxRetryCount + 1 };
}

export function notEnsured(group: string): FuelError {
  return new FuelError('REFUSED', `there is no group ${group}: ensure it first`);
}

function settingsOf({ ackTimeoutMs, maxRetries }: GroupSettings): PersistentSubscriptionToAllSettings {
  return {
    ...FIXED,
    messageTimeout: ackTimeoutMs,
    maxRetryCount: Math.min(Math.max(maxRetries - 1, 0), MAX_RETRIES), // the first time is no retry
  };
}

async function settingsAt(
  client: EventStoreDBClient,
  group: string,
): Promise<PersistentSubscriptionToAllSettings | undefined> {
  try {
    return (await client.getPersistentSubscriptionToAllInfo(group)).settings;
  } catch (error) {
    if (error instanceof PersistentSubscriptionDoesNotExistError) return undefined;
    throw error;
  }
}

async function create(
  client: EventStoreDBClient,
  group: string,
  settings: PersistentSubscriptionToAllSettings,
): Promise<void> {
  try {
    await client.createPersistentSubscriptionToAll(group, settings);
  } catch (error) {
    if (!(error instanceof PersistentSubscriptionExistsError)) throw error; // another process was first
  }
}

/** Where to start counts only when a group is made. */
function differs(
  present: PersistentSubscriptionToAllSettings,
  { startFrom: _, ...wanted }: PersistentSubscriptionToAllSettings,
): boolean {
  return Object.entries(wanted).some(([name, value]) => present[name as keyof typeof wanted] !== value);
}

/** Where the server does not show its own record of its groups, there is taken to be none. */
async function hasFilter(client: EventStoreDBClient, group: string, givenUp: AbortSignal): Promise<boolean> {
  const last = await readEnd(client, { stream: CONFIGURATION_STREAM, end: 'last' }, givenUp);
  const { entries = [] } = (last?.data ?? {}) as GroupConfiguration;
  const entry = entries.find(({ stream, group: name }) => stream === '$all' && name === group);
  return entry?.filter !== undefined && entry.filter !== null;
}

interface GroupConfiguration {
  readonly entries?: readonly {
    readonly stream: string;
    readonly group: string;
    readonly filter?: object | null;
  }[];
}

/**
 * Makes the group again, without a filter, from the first event that may not have ended: what its consumers are
 * handed twice changes nothing. A crash in between leaves no group, and the next call makes it from the start of the
 * log.
 */
async function replace(
  connection: EventStoreDbConnection,
  group: string,
  wanted: PersistentSubscriptionToAllSettings,
): Promise<void> {
  const checkpoint = (): Promise<StoredEvent | undefined> =>
    connection.use((client, givenUp) =>
      readEnd(client, { stream: groupStream(group, 'checkpoint'), end: 'last' }, givenUp),
    );
  const parked = (await readParked(connection, group)).map(({ event }) => BigInt(event.position));
  const first = [checkpointIn((await checkpoint())?.data), ...parked].reduce((a, b) => (b < a ? b : a));
  await connection.use((client) => client.deletePersistentSubscriptionToAll(group));
  // The server answers before the group's streams are gone: a group that still found them would go by them.
  while ((await checkpoint()) !== undefined) await pause(DELETED_LOOK_MS, connection.closed);
  const startFrom = first === 0n ? START : { commit: first, prepare: first };
  await connection.use((client) => create(client, group, { ...wanted, startFrom }));
}

/** The place in the server's own record of how far a group is: `C:<commit>/P:<prepare>`. 0 where there is none. */
function checkpointIn(data: unknown): bigint {
  return BigInt(/^C:(\d+)\//.exec(String(data))?.[1] ?? 0);
}
