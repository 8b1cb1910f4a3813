import streams from '@eventstore/db-client/generated/streams_pb.js';
import { status } from '@grpc/grpc-js';
import { fault, type ReadCall, send, toReadEvent } from './answers.ts';
import type { DoubleLog } from './double-log.ts';
import { type EventFilter, eventFilter, filterSettings, isHidden } from './event-filter.ts';
import type { LogRecord } from './log-record.ts';

export interface ReadContext {
  readonly log: DoubleLog;
  /** The subscriptions that are live. */
  readonly followers: Set<ReadCall>;
  /** Called when a subscription has read the log to its end and is not live yet. */
  readonly atEndOfLog: () => Promise<void>;
}

/** The server reads so many matching events at a time while it catches up. */
const PAGE = 32;

/**
 * A subscription to `$all`: catch-up in pages, `CaughtUp`, then live. With a filter it sends checkpoints every
 * `interval × window` events that it looked at, and at the end of a page while it catches up: not merely because it
 * has reached the log's end.
 */
export async function followAll(
  { log, followers, atEndOfLog }: ReadContext,
  call: ReadCall,
  options: streams.ReadReq.Options,
): Promise<void> {
  const filter = options.getFilter();
  const window = filter?.hasMax() === true ? filter.getMax() : PAGE;
  const checkpointEvery = filter === undefined ? Infinity : window * filter.getCheckpointintervalmultiplier();
  const wanted = eventFilter(filterSettings(filter));
  const sendEvent = (record: LogRecord): Promise<boolean> => {
    const event = toReadEvent(log.index.resolved(record, options.getResolveLinks()));
    return send(call, new streams.ReadResp().setEvent(event));
  };
  let next = startOf(log, options.getAll());
  const { server } = log;
  const after = server.skipsFirst ? -1 : Number(options.getAll()?.getPosition()?.getCommitPosition() ?? -1);
  const passes: EventFilter = (record) => record.position > after && wanted(record);
  let sent = -1;
  const confirmation = new streams.ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId(crypto.randomUUID());
  await send(call, new streams.ReadResp().setConfirmation(confirmation));

  let looked = 0;
  for (let isEnd = false; !isEnd && !call.cancelled; ) {
    const page = readPage(log.index.records, { from: next, window, passes });
    for (const record of page.events) if (!(await sendEvent(record))) return;
    sent = page.events.at(-1)?.position ?? sent;
    looked += page.looked;
    isEnd = page.isEnd;
    if (!isEnd && looked >= checkpointEvery) {
      looked %= checkpointEvery;
      const at = page.events.at(-1) ?? log.index.records[next];
      if (at !== undefined) await sendCheckpoint(call, at);
    } else if (isEnd && filter !== undefined && server.reportsEnd) {
      const position = Math.max(sent, log.index.records[next]?.position ?? log.end);
      await sendCheckpoint(call, { position });
    }
    next += page.looked;
  }
  await atEndOfLog();
  // It reads once more what was recorded meanwhile, and sends no checkpoint for it.
  for (let record = log.index.records[next]; record !== undefined; record = log.index.records[++next]) {
    if (passes(record)) await sendEvent(record);
  }
  await send(call, new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()));
  followers.add(call);
  call.once('close', () => followers.delete(call)).once('cancelled', () => followers.delete(call));
  for await (const record of liveFrom(log, call, next)) {
    if (passes(record)) await sendEvent(record);
    if (++looked < checkpointEvery) continue;
    looked = 0;
    await sendCheckpoint(call, record);
  }
}

/**
 * The index after the first event that `$all` shows at or after the position. The server takes that event for the one
 * which the subscriber has seen: where the position is a hidden record's, it is another one, which is never sent.
 */
function startOf(log: DoubleLog, options: streams.ReadReq.Options.AllOptions | undefined): number {
  if (options === undefined || options.hasStart()) return 0;
  if (options.hasEnd()) return log.index.records.length;
  const seen = log.index.indexAt(Number(options.getPosition()?.getCommitPosition()));
  if (seen === undefined) throw log.server.invalidSubscription();
  const { records } = log.index;
  if (!log.server.skipsFirst) return seen;
  for (let next = seen; next < records.length; next++) {
    const record = records[next];
    if (record !== undefined && !isHidden(record)) return next + 1;
  }
  return records.length;
}

interface Page {
  readonly events: readonly LogRecord[];
  readonly looked: number;
  readonly isEnd: boolean;
}

function readPage(
  records: readonly LogRecord[],
  { from, window, passes }: { readonly from: number; readonly window: number; readonly passes: EventFilter },
): Page {
  const events: LogRecord[] = [];
  let looked = 0;
  while (looked < window && events.length < PAGE) {
    const record = records[from + looked];
    if (record === undefined) return { events, looked, isEnd: true };
    if (passes(record)) events.push(record);
    looked++;
  }
  return { events, looked, isEnd: false };
}

/** Drops a live subscription as the server does when the caller reads more slowly than events come. */
export function dropAsTooSlow(call: ReadCall): void {
  const why = 'Consumer too slow to handle event while live. Client resubscription required.';
  call.emit('error', fault(status.ABORTED, `Operation timed out: ${why}`));
}

/** Every event from the index on as it is written, until the caller leaves. */
async function* liveFrom(log: DoubleLog, call: ReadCall, from: number): AsyncGenerator<LogRecord> {
  let notify = (): void => undefined;
  const wake = (): void => notify();
  const forget = log.onCommit(wake);
  call.on('cancelled', wake).on('error', wake);
  try {
    for (let next = from; !call.cancelled && !call.writableEnded; ) {
      const record = log.index.records[next];
      if (record !== undefined) {
        next++;
        yield record;
        continue;
      }
      await new Promise<void>((resolve) => {
        notify = resolve;
      });
    }
  } finally {
    forget();
  }
}

async function sendCheckpoint(call: ReadCall, { position }: Pick<LogRecord, 'position'>): Promise<void> {
  const checkpoint = new streams.ReadResp.Checkpoint();
  checkpoint.setCommitPosition(`${position}`);
  checkpoint.setPreparePosition(`${position}`);
  await send(call, new streams.ReadResp().setCheckpoint(checkpoint));
}
