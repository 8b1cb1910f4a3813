import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import {
  Metadata,
  type ServerDuplexStream,
  type ServerWritableStream,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import type { LogRecord, Resolved } from './log-record.ts';

export type ReadCall = ServerWritableStream<streams.ReadReq, streams.ReadResp>;
export type SubscriptionCall = ServerDuplexStream<persistent.ReadReq, persistent.ReadResp>;

const TICKS_PER_MS = 10_000;

/** An error with the server's text. The client reads `exception` in the trailers. */
export function fault(
  code: status,
  details: string,
  trailers: Readonly<Record<string, string>> = {},
): ServiceError {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(trailers)) metadata.set(key, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

export function streamDeleted(stream: string): ServiceError {
  return fault(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });
}

/** Errors about a persistent subscription to `$all`, as the client distinguishes them. */
const GROUP_FAULTS = {
  'persistent-subscription-does-not-exist': [status.NOT_FOUND, 'does not exist.'],
  'persistent-subscription-exists': [status.ALREADY_EXISTS, 'exists.'],
  'persistent-subscription-dropped': [status.CANCELLED, 'was dropped.'],
} as const;

export function groupFault(exception: keyof typeof GROUP_FAULTS, group: string): ServiceError {
  const [code, what] = GROUP_FAULTS[exception];
  const trailers = { exception, 'stream-name': '$all', 'group-name': group };
  return fault(code, `Subscription group ${group} on stream $all ${what}`, trailers);
}

/** The error of a node that follows the leader at this port. */
export function notLeader(leaderPort: number): ServiceError {
  return fault(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': `${leaderPort}`,
  });
}

export function invalidArgument(what: string): ServiceError {
  return fault(status.INVALID_ARGUMENT, what);
}

export function toReadEvent({ event, link }: Resolved): streams.ReadResp.ReadEvent {
  const answer = new streams.ReadResp.ReadEvent();
  if (event !== undefined) {
    answer.setEvent(filled(new streams.ReadResp.ReadEvent.RecordedEvent(), event, `${event.position}`));
  }
  if (link !== undefined) {
    answer.setLink(filled(new streams.ReadResp.ReadEvent.RecordedEvent(), link, `${link.position}`));
  }
  const original = link ?? event;
  if (original !== undefined) answer.setCommitPosition(`${original.position}`);
  return answer;
}

/** An event in a persistent subscription. A replayed event has its link's position. */
export function toSubscriptionEvent(
  { event, link }: Resolved,
  retryCount: number,
): persistent.ReadResp.ReadEvent {
  const answer = new persistent.ReadResp.ReadEvent().setRetryCount(retryCount);
  const position = `${(link ?? event)?.position}`;
  const filledIn = (record: LogRecord): persistent.ReadResp.ReadEvent.RecordedEvent =>
    filled(new persistent.ReadResp.ReadEvent.RecordedEvent(), record, position);
  if (event !== undefined) answer.setEvent(filledIn(event));
  if (link !== undefined) answer.setLink(filledIn(link));
  return answer.setCommitPosition(position);
}

/** Writes no faster than the caller reads. Returns true if the caller is still connected. */
export async function send<Answer>(
  call: ServerWritableStream<unknown, Answer> | ServerDuplexStream<unknown, Answer>,
  answer: Answer,
): Promise<boolean> {
  if (call.cancelled) return false;
  if (call.write(answer)) return true;
  return new Promise((resolve) => {
    const drained = (): void => settle(true);
    const cancelled = (): void => settle(false);
    const settle = (isThere: boolean): void => {
      call.off('drain', drained).off('cancelled', cancelled);
      resolve(isThere);
    };
    call.once('drain', drained).once('cancelled', cancelled);
  });
}

function filled<
  Answer extends streams.ReadResp.ReadEvent.RecordedEvent | persistent.ReadResp.ReadEvent.RecordedEvent,
>(answer: Answer, record: LogRecord, position: string): Answer {
  answer.setId(new shared.UUID().setString(record.id));
  answer.setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(record.stream)));
  answer.setStreamRevision(record.revision.toString());
  answer.setPreparePosition(position);
  answer.setCommitPosition(position);
  answer.setData(record.data);
  answer.setCustomMetadata(record.metadata);
  const contentType = record.isJson ? 'application/json' : 'application/octet-stream';
  answer
    .getMetadataMap()
    .set('type', record.type)
    .set('created', `${record.createdMs * TICKS_PER_MS}`)
    .set('content-type', contentType);
  return answer;
}

export function nameOf(identifier: shared.StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}
