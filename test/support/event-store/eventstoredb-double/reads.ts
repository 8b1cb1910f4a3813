import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { followAll, type ReadContext } from './all-subscription.ts';
import { invalidArgument, nameOf, type ReadCall, send, streamDeleted, toReadEvent } from './answers.ts';
import type { DoubleLog } from './double-log.ts';
import { isShown } from './event-filter.ts';
import type { LogRecord, Resolved } from './log-record.ts';

/** Answers Streams.Read: a stream, `$all`, or a subscription to `$all`. */
export async function read(context: ReadContext, call: ReadCall): Promise<void> {
  const { log } = context;
  const options = call.request.getOptions();
  const stream = options?.getStream();
  const all = options?.getAll();
  if (options === undefined) throw invalidArgument('no options');
  if (options.hasSubscription()) {
    if (all === undefined) throw invalidArgument('the double follows $all only');
    return followAll(context, call, options);
  }
  const backwards = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
  const limit = { count: Number(options.getCount()), backwards };
  const resolve = (record: LogRecord): Resolved => log.index.resolved(record, options.getResolveLinks());
  if (stream !== undefined) return readStream(log, call, stream, { ...limit, resolve });
  if (all === undefined) throw invalidArgument('neither a stream nor $all');
  const records = allFrom(log, all, backwards).filter(isShown);
  await hand(call, { ...limit, resolve, records });
}

interface Limit {
  readonly count: number;
  readonly backwards: boolean;
  readonly resolve: (record: LogRecord) => Resolved;
}

async function readStream(
  log: DoubleLog,
  call: ReadCall,
  options: streams.ReadReq.Options.StreamOptions,
  limit: Limit,
): Promise<void> {
  const name = nameOf(options.getStreamIdentifier());
  const stream = log.readable(name);
  if (stream.kind === 'deleted') throw streamDeleted(name);
  if (stream.kind === 'missing') {
    const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from(name));
    const missing = new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifier);
    await send(call, new streams.ReadResp().setStreamNotFound(missing));
    return;
  }
  const from = options.hasRevision() ? BigInt(options.getRevision()) : undefined;
  const records = stream.records.filter(({ revision }) => {
    if (options.hasEnd()) return limit.backwards;
    if (from === undefined) return !limit.backwards || revision === 0n;
    return limit.backwards ? revision <= from : revision >= from;
  });
  await hand(call, { ...limit, records });
}

/** Reads `$all` forwards from the position, or backwards from the event before it. */
function allFrom(
  log: DoubleLog,
  options: streams.ReadReq.Options.AllOptions,
  backwards: boolean,
): readonly LogRecord[] {
  const { records } = log.index;
  if (options.hasStart()) return backwards ? [] : records;
  if (options.hasEnd()) return backwards ? records : [];
  const from = log.index.indexAt(Number(options.getPosition()?.getCommitPosition()));
  if (from === undefined) throw log.server.invalidRead();
  return backwards ? records.slice(0, from) : records.slice(from);
}

async function hand(
  call: ReadCall,
  { records, count, backwards, resolve }: Limit & { readonly records: readonly LogRecord[] },
): Promise<void> {
  const chosen = backwards
    ? records.slice(Math.max(0, records.length - count)).reverse()
    : records.slice(0, count);
  for (const record of chosen) {
    if (!(await send(call, new streams.ReadResp().setEvent(toReadEvent(resolve(record)))))) return;
  }
}
