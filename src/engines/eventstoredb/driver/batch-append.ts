import { randomUUID } from 'node:crypto';
import type { EventStoreDBClient } from '@eventstore/db-client';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Position } from '../../../event-store/recorded-event.ts';
import type { StoredAppend } from '../../../event-store/stored-append.ts';
import { type DriverInternals, internalsOf } from './client.ts';
import { itemRefused, storeUnavailable } from './errors.ts';
import { toSafe } from './events.ts';

export type BatchAnswer =
  /** The server may leave out the position if the append is a repeated one. */
  | { readonly kind: 'recorded'; readonly revision: number; readonly position: Position | undefined }
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  | { readonly kind: 'erased' };

type Call = ReturnType<streamsGrpc.StreamsClient['batchAppend']>;

interface Waiting {
  readonly resolve: (answer: BatchAnswer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Replaces `appendToStream` of @eventstore/db-client 6.2.1, which has two faults. If the connection breaks while a write
 * waits, it rejects a promise that no caller can reach, which ends the process. And it reports a conflict that it does
 * not throw with revision 1, whatever the stream has.
 */
export class EventStoreDbBatchAppend {
  readonly #driver: DriverInternals;
  /** The appends that wait for an answer, by their correlation ids. */
  readonly #waiting = new Map<string, Waiting>();
  #call: Promise<Call> | undefined;

  constructor(client: EventStoreDBClient) {
    this.#driver = internalsOf(client);
  }

  /**
   * Rejects if the connection breaks; the events may have been recorded then. Sends nothing once `cancelled` has aborted,
   * since the next try may be under way.
   */
  async append(append: StoredAppend, cancelled: AbortSignal): Promise<BatchAnswer> {
    this.#call ??= this.#open();
    const call = await this.#call;
    cancelled.throwIfAborted();
    const correlationId = randomUUID();
    const { promise, resolve, reject } = Promise.withResolvers<BatchAnswer>();
    this.#waiting.set(correlationId, { resolve, reject });
    cancelled.addEventListener('abort', () => this.#waiting.delete(correlationId));
    call.write(requestOf(append, correlationId)); // callers limit how many are in flight
    return await promise;
  }

  /** Opens the bidirectional call that all appends go through. If it breaks, it rejects those that wait. */
  async #open(): Promise<Call> {
    // A follower forwards appends to the leader. If it had to refuse them, the driver would not see that answer.
    const options = this.#driver.callArguments({ requiresLeader: false }, { deadline: Infinity });
    const open = this.#driver.GRPCStreamCreator(streamsGrpc.StreamsClient, 'appendToStream', (client) =>
      client.batchAppend(...options),
    );
    let isOpen = true;
    const end = (error: Error): void => {
      if (!isOpen) return;
      isOpen = false;
      this.#call = undefined;
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    try {
      const call = await open();
      return call
        .on('data', (response: streamsPb.BatchAppendResp) => this.#settle(response))
        .on('error', end)
        .on('end', () => end(storeUnavailable('the server ended the call of the appends')));
    } catch (error) {
      this.#call = undefined;
      throw error;
    }
  }

  #settle(response: streamsPb.BatchAppendResp): void {
    const correlationId = response.getCorrelationId()?.getString() ?? '';
    const waiting = this.#waiting.get(correlationId);
    if (waiting === undefined) return; // it was cancelled, and the next try has another id
    this.#waiting.delete(correlationId);
    try {
      waiting.resolve(answerOf(response));
    } catch (error) {
      waiting.reject(error as Error);
    }
  }
}

function requestOf(
  { stream, expected, events }: StoredAppend,
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
    message.setCustomMetadata(Buffer.from(metadata));
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
      throw itemRefused(`${name} ${error?.getMessage() ?? ''}`);
    case 'Timeout':
    case 'Empty': // not ready, too busy, or not the leader
      throw storeUnavailable(error?.getMessage() || 'the server timed out');
    default:
      throw new Error(`the event store refused an append: ${name} ${error?.getMessage() ?? ''}`);
  }
}

function uuid(text: string): sharedPb.UUID {
  return new sharedPb.UUID().setString(text);
}
