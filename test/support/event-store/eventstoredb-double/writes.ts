import shared from '@eventstore/db-client/generated/shared_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { invalidArgument, nameOf, send, streamDeleted } from './answers.ts';
import type { DoubleLog, WriteResult } from './double-log.ts';
import type { ProposedRecord } from './log-record.ts';
import type { Expected } from './stream-index.ts';

/**
 * A fault of an append. It is recorded and not answered, or answered with a time-out, without its position or as a
 * conflict, or a busy node refuses it and does not record it.
 */
export type AppendFault = 'unanswered' | 'timed out' | 'without position' | 'conflict' | 'busy';

interface AppendContext {
  readonly log: DoubleLog;
  /** Asked once for each append. */
  readonly nextFault: () => AppendFault | undefined;
}

/** The server answers an append without an event neither with success nor with an error worth copying. */
const NO_EVENTS = 'an append without events';
/** The server's default limit for the data of one append. Metadata does not count. */
const MAX_APPEND_BYTES = 1024 * 1024;

/** Answers Streams.BatchAppend: many appends on one call, matched by correlation id. */
export async function batchAppend(
  context: AppendContext,
  call: ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>,
): Promise<void> {
  const begun = new Map<string, { options: streams.BatchAppendReq.Options; events: ProposedRecord[] }>();
  for await (const message of call as AsyncIterable<streams.BatchAppendReq>) {
    const correlation = message.getCorrelationId();
    const id = correlation?.getString() ?? '';
    const options = message.getOptions();
    if (options !== undefined) begun.set(id, { options, events: [] });
    const request = begun.get(id);
    request?.events.push(...message.getProposedMessagesList().map(toRecord));
    if (request === undefined || !message.getIsFinal()) continue;
    begun.delete(id);
    void answerBatch(context, call, { ...request, correlation });
  }
}

/** Answers Streams.Tombstone with the position of the tombstone. */
export async function tombstone(
  log: DoubleLog,
  request: streams.TombstoneReq,
): Promise<streams.TombstoneResp> {
  const options = request.getOptions();
  if (options?.hasAny() !== true) throw invalidArgument('only a tombstone at any revision');
  const stream = nameOf(options.getStreamIdentifier());
  const result = await log.tombstone(stream);
  if (result.kind !== 'written') throw streamDeleted(stream);
  const position = `${result.last.position}`;
  const place = new streams.TombstoneResp.Position();
  return new streams.TombstoneResp().setPosition(
    place.setCommitPosition(position).setPreparePosition(position),
  );
}

async function answerBatch(
  { log, nextFault }: AppendContext,
  call: ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>,
  request: {
    readonly options: streams.BatchAppendReq.Options;
    readonly events: readonly ProposedRecord[];
    readonly correlation: shared.UUID | undefined;
  },
): Promise<void> {
  const { options, events, correlation } = request;
  const identifier = options.getStreamIdentifier();
  const expected = expectedOf(options);
  const answer = new streams.BatchAppendResp().setCorrelationId(correlation).setStreamIdentifier(identifier);
  const bytes = events.reduce((sum, { data }) => sum + data.length, 0);
  const fault = nextFault();
  if (events.length === 0) {
    answer.setError(toStatus(new shared.BadRequest().setMessage(NO_EVENTS), 'BadRequest'));
  } else if (bytes > MAX_APPEND_BYTES) {
    const exceeded = new shared.MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND_BYTES);
    answer.setError(toStatus(exceeded, 'MaximumAppendSizeExceeded'));
  } else if (fault === 'busy') {
    answer.setError(toStatus(new empty.Empty(), 'Empty').setMessage('Server Is Busy'));
  } else {
    const result = await log.write({ stream: nameOf(identifier), expected, events });
    setResult(answer, withFault(result, fault), { expected, identifier });
    if (fault === 'timed out') answer.setError(toStatus(new shared.Timeout(), 'Timeout'));
    if (fault === 'without position') answer.getSuccess()?.clearPosition();
  }
  if (fault !== 'unanswered') await send(call, answer);
}

function withFault(result: WriteResult, fault: AppendFault | undefined): WriteResult {
  if (fault !== 'conflict' || result.kind !== 'written') return result;
  return { kind: 'wrong', current: result.last.revision };
}

function setResult(
  answer: streams.BatchAppendResp,
  result: WriteResult,
  request: { readonly expected: Expected; readonly identifier: shared.StreamIdentifier | undefined },
): void {
  if (result.kind === 'deleted') {
    const deleted = new shared.StreamDeleted().setStreamIdentifier(request.identifier);
    answer.setError(toStatus(deleted, 'StreamDeleted'));
  } else if (result.kind === 'wrong') {
    const wrong = new shared.WrongExpectedVersion();
    if (result.current < 0n) wrong.setCurrentNoStream(new empty.Empty());
    else wrong.setCurrentStreamRevision(`${result.current}`);
    if (request.expected === 'any') wrong.setExpectedAny(new empty.Empty());
    else if (request.expected === 'no_stream') wrong.setExpectedNoStream(new empty.Empty());
    else wrong.setExpectedStreamPosition(`${request.expected}`);
    answer.setError(toStatus(wrong, 'WrongExpectedVersion'));
  } else {
    const { last } = result;
    const position = new shared.AllStreamPosition();
    position.setCommitPosition(`${last.position}`).setPreparePosition(`${last.position}`);
    const success = new streams.BatchAppendResp.Success();
    answer.setSuccess(success.setCurrentRevision(`${last.revision}`).setPosition(position));
  }
}

function toRecord(message: streams.BatchAppendReq.ProposedMessage): ProposedRecord {
  const metadata = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? '',
    type: metadata.get('type') ?? '',
    isJson: metadata.get('content-type') === 'application/json',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

function expectedOf(options: streams.BatchAppendReq.Options): Expected {
  if (options.hasAny()) return 'any';
  if (options.hasNoStream()) return 'no_stream';
  return BigInt(options.getStreamPosition());
}

function toStatus(detail: { serializeBinary(): Uint8Array }, name: string): statuses.Status {
  const details = new any.Any();
  details.pack(detail.serializeBinary(), `event_store.client.${name}`);
  return new statuses.Status().setDetails(details);
}
