import shared from '@eventstore/db-client/generated/shared_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { type ServerDuplexStream, type ServerReadableStream, status } from '@grpc/grpc-js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { fault, invalidArgument, nameOf, send, streamDeleted } from './answers.ts';
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
const EXPECTED_NUMBERS = { any: -2n, no_stream: -1n, stream_exists: -4n } as const;

/** Answers Streams.Append, one call for each append. `undefined` means that it is never answered. */
export async function append(
  { log, nextFault }: AppendContext,
  call: ServerReadableStream<streams.AppendReq, streams.AppendResp>,
): Promise<streams.AppendResp | undefined> {
  let options: streams.AppendReq.Options | undefined;
  const events: ProposedRecord[] = [];
  for await (const message of call as AsyncIterable<streams.AppendReq>) {
    options ??= message.getOptions();
    const proposed = message.getProposedMessage();
    if (proposed !== undefined) events.push(toRecord(proposed));
  }
  if (options === undefined || events.length === 0) throw invalidArgument(NO_EVENTS);
  const stream = nameOf(options.getStreamIdentifier());
  const expected = expectedOf(options);
  const result = await log.write({ stream, expected, events });
  if (result.kind === 'deleted') throw streamDeleted(stream);
  return nextFault() === undefined ? toAppendResp(result, expected) : undefined;
}

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

/** Answers Streams.Tombstone and Streams.Delete with the position of the written event or an error. */
export async function remove(
  log: DoubleLog,
  options: streams.TombstoneReq.Options | streams.DeleteReq.Options | undefined,
  { isFinal }: { readonly isFinal: boolean },
): Promise<number> {
  if (options === undefined) throw invalidArgument('no options');
  const stream = nameOf(options.getStreamIdentifier());
  const expected = expectedOf(options);
  const check = log.index.decide(stream, expected, [crypto.randomUUID()]);
  const isNowhere =
    !isFinal && log.index.all(stream).length === 0 && log.index.all(`$$${stream}`).length === 0;
  if (check.kind === 'deleted') throw streamDeleted(stream);
  if (check.kind === 'wrong' || isNowhere) {
    const current = check.kind === 'wrong' ? check.current : -1n;
    throw wrongExpectedVersion(stream, { expected, current });
  }
  const result = await (isFinal ? log.tombstone(stream, 'any') : log.softDelete(stream));
  if (result.kind !== 'written') throw streamDeleted(stream);
  return result.last.position;
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
    else if (request.expected === 'stream_exists') wrong.setExpectedStreamExists(new empty.Empty());
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

function toAppendResp(
  result: Exclude<WriteResult, { kind: 'deleted' }>,
  expected: Expected,
): streams.AppendResp {
  if (result.kind === 'wrong') {
    const wrong = new streams.AppendResp.WrongExpectedVersion();
    if (result.current < 0n) wrong.setCurrentNoStream(new shared.Empty());
    else wrong.setCurrentRevision(`${result.current}`);
    if (expected === 'any') wrong.setExpectedAny(new shared.Empty());
    else if (expected === 'no_stream') wrong.setExpectedNoStream(new shared.Empty());
    else if (expected === 'stream_exists') wrong.setExpectedStreamExists(new shared.Empty());
    else wrong.setExpectedRevision(`${expected}`);
    return new streams.AppendResp().setWrongExpectedVersion(wrong);
  }
  const { last } = result;
  const position = new streams.AppendResp.Position();
  position.setCommitPosition(`${last.position}`).setPreparePosition(`${last.position}`);
  const success = new streams.AppendResp.Success();
  return new streams.AppendResp().setSuccess(
    success.setCurrentRevision(`${last.revision}`).setPosition(position),
  );
}

function toRecord(
  message: streams.AppendReq.ProposedMessage | streams.BatchAppendReq.ProposedMessage,
): ProposedRecord {
  const metadata = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? '',
    type: metadata.get('type') ?? '',
    isJson: metadata.get('content-type') === 'application/json',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

function expectedOf(
  options:
    | streams.AppendReq.Options
    | streams.BatchAppendReq.Options
    | streams.TombstoneReq.Options
    | streams.DeleteReq.Options,
): Expected {
  if (options.hasAny()) return 'any';
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasStreamExists()) return 'stream_exists';
  return BigInt('getRevision' in options ? options.getRevision() : options.getStreamPosition());
}

function wrongExpectedVersion(
  stream: string,
  { expected, current }: { readonly expected: Expected; readonly current: bigint },
): Error {
  const number = typeof expected === 'bigint' ? expected : EXPECTED_NUMBERS[expected];
  return fault(
    status.FAILED_PRECONDITION,
    `Delete failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${number}, Actual version: ${current}`,
    {
      exception: 'wrong-expected-version',
      'stream-name': stream,
      'expected-version': `${number}`,
      'actual-version': `${current}`,
    },
  );
}

function toStatus(detail: { serializeBinary(): Uint8Array }, name: string): statuses.Status {
  const details = new any.Any();
  details.pack(detail.serializeBinary(), `event_store.client.${name}`);
  return new statuses.Status().setDetails(details);
}
