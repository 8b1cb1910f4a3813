import { randomUUID } from 'node:crypto';
import type { EventStoreDBClient } from '@eventstore/db-client';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ExpectedRevision, Position } from '../../event-store.ts';
import { AppendRefused, EndedByServer } from './errors.ts';
import { toSafe } from './events.ts';

/** An event as it is sent: data and metadata are JSON. */
export interface EventBytes {
  readonly id: string;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export interface BatchAppend {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly EventBytes[];
}

export type BatchAnswer =
  /** `position` is missing where the server does not find it at once, after a repeated append. */
  | { readonly kind: 'recorded'; readonly revision: number; readonly position: Position | undefined }
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  | { readonly kind: 'erased' };

type Call = ReturnType<streamsGrpc.StreamsClient['batchAppend']>;

/** What the driver's client offers its own methods: a call that `dispose` ends, on a connection that it renews. */
interface Transport {
  GRPCStreamCreator(
    service: typeof streamsGrpc.StreamsClient,
    name: string,
    open: (client: streamsGrpc.StreamsClient) => Call,
  ): () => Promise<Call>;
  callArguments(
    options: object,
    call: { readonly deadline: number },
  ): Parameters<streamsGrpc.StreamsClient['batchAppend']>;
}

/**
 * Appends over one call to the server, many in flight. It stands in for the driver's own `appendToStream`, which
 * gets the actual revision of a conflict wrong, and ends the process by a rejection out of reach when the
 * connection breaks while it waits to write.
 */
export class EventStoreDbBatchAppend {
  readonly #transport: Transport;
  #call: Promise<BatchCall> | undefined;

  constructor(client: EventStoreDBClient) {
    this.#transport = client as unknown as Transport;
  }

  /**
   * Rejects where the connection breaks: then the events may have been recorded. Waits until `givenUp` aborts;
   * nothing is sent after that, since another try may be under way.
   */
  async append(append: BatchAppend, givenUp: AbortSignal): Promise<BatchAnswer> {
    const call = await this.#openCall();
    return await call.append(append, givenUp);
  }

  #openCall(): Promise<BatchCall> {
    if (this.#call !== undefined) return this.#call;
    const transport = this.#transport;
    const open = transport.GRPCStreamCreator(streamsGrpc.StreamsClient, 'appendToStream', (client) =>
      client.batchAppend(...transport.callArguments({}, { deadline: Number.POSITIVE_INFINITY })),
    );
    const forget = (): void => {
      if (this.#call === opened) this.#call = undefined;
    };
    const opened = open().then((stream) => new BatchCall(stream, forget));
    opened.catch(forget);
    this.#call = opened;
    return opened;
  }
}

interface Waiting {
  readonly resolve: (answer: BatchAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** One call, and who waits for an answer on it. */
class BatchCall {
  readonly #stream: Call;
  readonly #waiting = new Map<string, Waiting>();
  #ended: Error | undefined;

  constructor(stream: Call, onEnd: () => void) {
    this.#stream = stream;
    const end = (error: Error): void => {
      this.#ended ??= error;
      onEnd();
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    stream.on('data', (response: streamsPb.BatchAppendResp) => this.#settle(response));
    stream.on('error', end);
    stream.on('end', () => end(new EndedByServer('the call of the appends')));
  }

  append(append: BatchAppend, givenUp: AbortSignal): Promise<BatchAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) throw this.#ended;
      givenUp.throwIfAborted();
      const correlationId = randomUUID();
      this.#waiting.set(correlationId, { resolve, reject });
      givenUp.addEventListener('abort', () => this.#waiting.delete(correlationId));
      this.#stream.write(requestOf(append, correlationId)); // how much is in flight is the callers' limit
    });
  }

  #settle(response: streamsPb.BatchAppendResp): void {
    const correlationId = response.getCorrelationId()?.getString() ?? '';
    const waiting = this.#waiting.get(correlationId);
    if (waiting === undefined) return; // given up: a repetition is answered on its own
    this.#waiting.delete(correlationId);
    try {
      waiting.resolve(answerOf(response));
    } catch (error) {
      waiting.reject(error as Error);
    }
  }
}

function requestOf(
  { stream, expected, events }: BatchAppend,
  correlationId: string,
): streamsPb.BatchAppendReq {
  const options = new streamsPb.BatchAppendReq.Options();
  const identifier = new sharedPb.StreamIdentifier();
  identifier.setStreamName(Buffer.from(stream));
  options.setStreamIdentifier(identifier);
  if (expected === 'any') options.setAny(new sharedPb.Empty());
  else if (expected === 'none') options.setNoStream(new sharedPb.Empty());
  else options.setStreamPosition(String(expected));
  const request = new streamsPb.BatchAppendReq();
  request.setCorrelationId(uuid(correlationId));
  request.setOptions(options);
  request.setIsFinal(true);
  for (const { id, type, data, metadata } of events) {
    const message = new streamsPb.BatchAppendReq.ProposedMessage();
    message.setId(uuid(id));
    message.getMetadataMap().set('type', type).set('content-type', 'application/json');
    message.setData(data);
    message.setCustomMetadata(metadata);
    request.addProposedMessages(message);
  }
  return request;
}

function answerOf(response: streamsPb.BatchAppendResp): BatchAnswer {
  const success = response.getSuccess();
  if (success !== undefined) {
    const position = Number(success.getPosition()?.getCommitPosition());
    return {
      kind: 'recorded',
      revision: toSafe(success.getCurrentRevision()),
      position: Number.isSafeInteger(position) ? position : undefined,
    };
  }
  const error = response.getError();
  const details = error?.getDetails();
  const name = details?.getTypeName() ?? '';
  switch (name.slice(name.lastIndexOf('.') + 1)) {
    case 'WrongExpectedVersion': {
      const wrong = details?.unpack(sharedPb.WrongExpectedVersion.deserializeBinary, name);
      const current = wrong?.hasCurrentStreamRevision() ? wrong.getCurrentStreamRevision() : undefined;
      return { kind: 'conflict', actual: current === undefined ? undefined : toSafe(current) };
    }
    case 'StreamDeleted':
      return { kind: 'erased' };
    case 'MaximumAppendSizeExceeded':
    case 'BadRequest':
      throw new AppendRefused(`${name} ${error?.getMessage() ?? ''}`);
    case 'Timeout':
    case 'Empty': // not ready, too busy, or not the leader
      throw new BatchRefusal(error?.getMessage() || 'the server timed out');
    default:
      throw new Error(`EventStoreDB did not take an append: ${name} ${error?.getMessage() ?? ''}`);
  }
}

/** The server could not take the append just then. */
export class BatchRefusal extends Error {
  readonly code = 14; // unavailable, as gRPC has it
}

function uuid(text: string): sharedPb.UUID {
  return new sharedPb.UUID().setString(text);
}
