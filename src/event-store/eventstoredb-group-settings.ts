import {
  type EventStoreDBClient,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionExistsError,
  type PersistentSubscriptionToAllSettings,
  ROUND_ROBIN,
  START,
  UNBOUNDED,
} from '@eventstore/db-client';
import { FuelError } from '../errors.ts';
import type { GroupSettings } from './event-store.ts';
import type { EventStoreDbConnection } from './eventstoredb-connection.ts';
import { filterOf } from './eventstoredb-events.ts';
import { readLast } from './eventstoredb-reads.ts';

const MOST_RETRIES = 2 ** 31 - 1; // the server counts them in 32 bits
/** Where the server keeps the groups' filters, which it tells nowhere else. */
const CONFIGURATION_STREAM = '$persistentSubscriptionConfig';

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

/** As `PersistentSubscriptions.ensureGroup`. Rejects with `REFUSED` where the group has other prefixes. */
export async function ensureGroup(
  connection: EventStoreDbConnection,
  group: string,
  settings: GroupSettings,
): Promise<void> {
  const wanted = settingsOf(settings);
  await connection.use(async (client, givenUp) => {
    const present = await settingsAt(client, group);
    if (present === undefined) {
      await create(client, group, settings);
      return;
    }
    await assertFilter(client, { group, prefixes: settings.prefixes, givenUp });
    if (differs(present, wanted)) await client.updatePersistentSubscriptionToAll(group, wanted);
  });
}

/** What the group's consumers go by. Rejects with `REFUSED` where there is no such group. */
export async function limitsOf(
  connection: EventStoreDbConnection,
  group: string,
  signal: AbortSignal,
): Promise<GroupLimits> {
  const settings = await connection.use((client) => settingsAt(client, group), { signal });
  if (settings === undefined) {
    throw new FuelError('REFUSED', `there is no group ${group}: ensure it first`);
  }
  return { ackTimeoutMs: settings.messageTimeout, maxRetries: settings.maxRetryCount + 1 };
}

function settingsOf({ ackTimeoutMs, maxRetries }: GroupSettings): PersistentSubscriptionToAllSettings {
  return {
    ...FIXED,
    messageTimeout: ackTimeoutMs,
    maxRetryCount: Math.min(Math.max(maxRetries - 1, 0), MOST_RETRIES), // the first time is no retry
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

async function create(client: EventStoreDBClient, group: string, settings: GroupSettings): Promise<void> {
  try {
    const filter = filterOf({ prefixes: settings.prefixes });
    await client.createPersistentSubscriptionToAll(group, settingsOf(settings), { filter });
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

/** The server can not change a filter. Where it does not tell the present one, it is taken to be right. */
async function assertFilter(
  client: EventStoreDBClient,
  { group, prefixes, givenUp }: { group: string; prefixes: readonly string[]; givenUp: AbortSignal },
): Promise<void> {
  const last = await readLast(client, CONFIGURATION_STREAM, givenUp);
  const present = prefixesIn(last?.data, group);
  if (present === undefined || present === listOf(prefixes)) return;
  throw new FuelError(
    'REFUSED',
    `EventStoreDB can not change for which streams a group is: ${group} is for ${present || 'all'}, not for ` +
      `${listOf(prefixes)}. Delete the group there, and it is made anew, from the start of the log`,
  );
}

/** The prefixes that the server's own record of its groups has for this one. */
function prefixesIn(configuration: unknown, group: string): string | undefined {
  const { entries = [] } = (configuration ?? {}) as GroupConfiguration;
  const filter = entries.find((entry) => entry.stream === '$all' && entry.group === group)?.filter;
  if (filter === undefined) return undefined;
  return filter.type === 'prefix' ? listOf(filter.data.split(',')) : '';
}

interface GroupConfiguration {
  readonly entries?: readonly {
    readonly stream: string;
    readonly group: string;
    readonly filter?: { readonly type: string; readonly data: string };
  }[];
}

function listOf(prefixes: readonly string[]): string {
  return [...prefixes].sort().join(', ');
}
