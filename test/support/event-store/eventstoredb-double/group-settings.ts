import persistent from '@eventstore/db-client/generated/persistent_pb.js';

/** A group's entry in the configuration stream, as the server writes it. Times are milliseconds. */
export interface GroupSettings {
  readonly stream: '$all';
  readonly group: string;
  /** The start without a checkpoint. The event there is included. */
  readonly startPosition: string;
  readonly resolveLinkTos: boolean;
  readonly extraStatistics: boolean;
  readonly messageTimeout: number;
  readonly maxRetryCount: number;
  readonly checkPointAfter: number;
  readonly minCheckPointCount: number;
  readonly maxCheckPointCount: number;
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  readonly historyBufferSize: number;
  readonly namedConsumerStrategy: string;
}

/** The counters in a group's information. */
export interface GroupStatistics {
  readonly clients: readonly { readonly name: string; readonly inFlight: number; readonly room: number }[];
  readonly sent: number;
  readonly outstanding: number;
  readonly retrying: number;
  readonly parked: number;
  readonly checkpoint: number | undefined;
  readonly known: number | undefined;
}

const STRATEGIES = ['DispatchToSingle', 'RoundRobin', 'Pinned'];

export function readSettings(
  message: persistent.CreateReq.Settings | persistent.UpdateReq.Settings | undefined,
  kept: Pick<GroupSettings, 'group' | 'startPosition'>,
): GroupSettings {
  const settings = message ?? new persistent.CreateReq.Settings();
  return {
    stream: '$all',
    ...kept,
    resolveLinkTos: settings.getResolveLinks(),
    extraStatistics: settings.getExtraStatistics(),
    messageTimeout: settings.getMessageTimeoutMs(),
    maxRetryCount: settings.getMaxRetryCount(),
    checkPointAfter: settings.getCheckpointAfterMs(),
    minCheckPointCount: settings.getMinCheckpointCount(),
    maxCheckPointCount: settings.getMaxCheckpointCount(),
    maxSubscriberCount: settings.getMaxSubscriberCount(),
    liveBufferSize: settings.getLiveBufferSize(),
    readBatchSize: settings.getReadBatchSize(),
    historyBufferSize: settings.getHistoryBufferSize(),
    namedConsumerStrategy: STRATEGIES[settings.getNamedConsumerStrategy()] ?? '',
  };
}

export function toSubscriptionInfo(
  settings: GroupSettings,
  statistics: GroupStatistics,
): persistent.SubscriptionInfo {
  const info = new persistent.SubscriptionInfo();
  info.setEventSource('$all').setGroupName(settings.group).setStatus('Live');
  info.setStartFrom(settings.startPosition);
  info.setResolveLinkTos(settings.resolveLinkTos).setExtraStatistics(settings.extraStatistics);
  info.setMessageTimeoutMilliseconds(settings.messageTimeout).setMaxRetryCount(settings.maxRetryCount);
  info.setCheckPointAfterMilliseconds(settings.checkPointAfter);
  info.setMinCheckPointCount(settings.minCheckPointCount);
  info.setMaxCheckPointCount(settings.maxCheckPointCount);
  info.setMaxSubscriberCount(settings.maxSubscriberCount);
  info.setLiveBufferSize(settings.liveBufferSize).setReadBatchSize(settings.readBatchSize);
  info.setBufferSize(settings.historyBufferSize).setNamedConsumerStrategy(settings.namedConsumerStrategy);
  info.setTotalItems(`${statistics.sent}`).setCountSinceLastMeasurement('0').setLiveBufferCount('0');
  info.setOutstandingMessagesCount(statistics.outstanding).setTotalInFlightMessages(statistics.outstanding);
  info.setRetryBufferCount(statistics.retrying).setParkedMessageCount(`${statistics.parked}`);
  info.setLastCheckpointedEventPosition(positionText(statistics.checkpoint));
  info.setLastKnownEventPosition(positionText(statistics.known));
  info.setConnectionsList(
    statistics.clients.map(({ name, inFlight, room }) => {
      const connection = new persistent.SubscriptionInfo.ConnectionInfo().setConnectionName(name);
      connection.setTotalItems('0').setCountSinceLastMeasurement('0');
      return connection.setInFlightMessages(inFlight).setAvailableSlots(room);
    }),
  );
  return info;
}

/** A position as the server writes it in texts; empty if there is none. */
export function positionText(position: number | undefined): string {
  return position === undefined ? '' : `C:${position}/P:${position}`;
}

export function parsePosition(text: string): number {
  return Number(/^C:(\d+)\//.exec(text)?.[1]);
}
