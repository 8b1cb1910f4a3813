import {
  type EventStoreDBClient,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionExistsError,
  type PersistentSubscriptionToAllInfo,
  type PersistentSubscriptionToAllSettings,
  ROUND_ROBIN,
  START,
  UNBOUNDED,
} from '@eventstore/db-client';
import type { GroupSettings, GroupStatus } from '../../../event-store/event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { toSafe } from '../driver/events.ts';

/** The settings that are the same for every group. */
const FIXED = {
  startFrom: START,
  resolveLinkTos: false, // there are no links among the events
  extraStatistics: false, // they take memory for each event
  // After a restart the server sends acknowledged events again unless a checkpoint covers them. It writes one every
  // second, even for a single event, and one for every thousand events.
  checkPointAfter: 1_000,
  checkPointLowerBound: 1,
  checkPointUpperBound: 1_000,
  maxRetryCount: 2 ** 31 - 1, // no limit: the server counts them in 32 bits
  maxSubscriberCount: UNBOUNDED, // as many processes as there are
  // The server reads large pages, and several of them ahead of the consumers.
  readBatchSize: 500,
  historyBufferSize: 5_000,
  liveBufferSize: 5_000,
  consumerStrategyName: ROUND_ROBIN, // any consumer may take any event
} as const;

/**
 * Does `PersistentSubscriptions.ensureGroup`. The group has no filter, since the server would lose events when it loads
 * such a group again (0049). Instead its consumers apply `settings.prefixes`.
 */
export async function ensureGroup(
  connection: EventStoreDbConnection,
  group: string,
  settings: GroupSettings,
): Promise<void> {
  const wanted = { ...FIXED, messageTimeout: settings.ackTimeoutMs };
  const present = (await connection.use((client) => infoAt(client, group)))?.settings;
  if (present === undefined) {
    await connection.use((client) => create(client, group, wanted));
  } else if (differs(present, wanted)) {
    await connection.use((client) => client.updatePersistentSubscriptionToAll(group, wanted));
  }
}

/** Does `PersistentSubscriptions.status`. With a signal it tries only once. */
export async function statusOf(
  connection: EventStoreDbConnection,
  group: string,
  signal?: AbortSignal,
): Promise<GroupStatus | undefined> {
  const options = signal === undefined ? {} : { retryForMs: 0, signal };
  const info = await connection.use((client) => infoAt(client, group), options);
  if (info === undefined) return undefined;
  const { lastCheckpointedEventPosition: checkpoint, parkedMessageCount } = info.stats;
  return { position: toSafe(checkpoint?.commit ?? 0n), parked: toSafe(parkedMessageCount) };
}

async function infoAt(
  client: EventStoreDBClient,
  group: string,
): Promise<PersistentSubscriptionToAllInfo | undefined> {
  try {
    return await client.getPersistentSubscriptionToAllInfo(group);
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

/** Ignores `startFrom`, which matters only when a group is created. */
function differs(
  present: PersistentSubscriptionToAllSettings,
  { startFrom: _, ...wanted }: PersistentSubscriptionToAllSettings,
): boolean {
  return Object.entries(wanted).some(([name, value]) => present[name as keyof typeof wanted] !== value);
}
