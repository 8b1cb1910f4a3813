import streams from '@eventstore/db-client/generated/streams_pb.js';
import { status } from '@grpc/grpc-js';
import { fault, type ReadCall, send, toReadEvent } from './answers.ts';
import type { DoubleLog } from './double-log.ts';
import { type EventFilter, eventFilter, isShown } from './event-filter.ts';
import type { LogRecord } from './log-record.ts';

export interface ReadContext {
  readonly log: DoubleLog;
  /** The subscriptions that are live. */
  readonly followers: Set<ReadCall>;
  /** Called when a subscription has read the log to its end and is not live yet. */
  readonly atEndOfLog: () => Promise<void>;
}

/** How many matching events the server reads at a time while it catches up. */
const PAGE = 32;
/** The size of the buffer of a live subscription. If it is full, the server reads the log again. */
const LIVE_BUFFER = 32;

/** The position that the server reports. `prepare` is 0 if the event at `commit` need not be handed out. */
interface Place {
  readonly commit: number;
  readonly prepare: number;
}

/**
 * A subscription to `$all`: catch-up in pages, `CaughtUp`, then live. KurrentDB catches up again if it is behind. With
 * a filter it sends checkpoints every `interval × window` events that it looked at, and at the end of a page while it
 * catches up: not merely because it has reached the log's end.
 */
export async function followAll(
  context: ReadContext,
  call: ReadCall,
  options: streams.ReadReq.Options,
): Promise<void> {
  const { followers } = context;
  const following = new Following(context, call, options);
  call.once('close', () => followers.delete(call)).once('cancelled', () => followers.delete(call));
  const confirmation = new streams.ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId(crypto.randomUUID());
  await send(call, new streams.ReadResp().setConfirmation(confirmation));
  while (!call.cancelled && !call.writableEnded) {
    await following.catchUp();
    await following.live();
  }
}

class Following {
  readonly #context: ReadContext;
  readonly #call: ReadCall;
  readonly #resolveLinks: boolean;
  readonly #window: number;
  readonly #checkpointEvery: number;
  readonly #passes: EventFilter;
  /** The start of the next page. */
  #from: Place;
  #next: number;
  #looked = 0;

  constructor(context: ReadContext, call: ReadCall, options: streams.ReadReq.Options) {
    const { log } = context;
    const filter = options.getFilter();
    const after = Number(options.getAll()?.getPosition()?.getCommitPosition() ?? -1);
    const wanted = eventFilter(filter);
    this.#context = context;
    this.#call = call;
    this.#resolveLinks = options.getResolveLinks();
    this.#window = filter?.hasMax() === true ? filter.getMax() : PAGE;
    this.#checkpointEvery =
      filter === undefined ? Infinity : this.#window * filter.getCheckpointintervalmultiplier();
    this.#passes = (record) => (log.server.skipsFirst || record.position > after) && wanted(record);
    this.#next = startOf(log, options.getAll());
    this.#from = log.server.skipsFirst ? this.#place() : at(Math.max(0, after));
  }

  async catchUp(): Promise<void> {
    const { log, atEndOfLog } = this.#context;
    for (let isEnd = false; !isEnd && !this.#call.cancelled; ) {
      const range = { from: this.#next, window: this.#window, passes: this.#passes };
      const page = readPage(log.index.records, range);
      for (const record of page.events) if (!(await this.#sendEvent(record))) return;
      this.#looked += page.looked;
      isEnd = page.isEnd;
      const last = page.events.at(-1);
      const reached = last === undefined ? this.#from : at(last.position);
      const isDue = !isEnd && this.#looked >= this.#checkpointEvery;
      if (isDue) this.#looked %= this.#checkpointEvery;
      const reportsEnd = isEnd && this.#checkpointEvery !== Infinity && log.server.reportsEnd;
      if (isDue || reportsEnd) await this.#sendCheckpoint(reached);
      this.#next += page.looked;
      this.#from = this.#place();
    }
    await atEndOfLog();
    // The server reads once more what was recorded meanwhile, and sends no checkpoint for it.
    for (let record = this.#record; record !== undefined; ) {
      if (this.#passes(record)) await this.#sendEvent(record);
      this.#next++;
      record = this.#record;
    }
    await send(this.#call, new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()));
  }

  /** Sends every event as it is written, until the caller leaves or there are too many at once. */
  async live(): Promise<void> {
    const call = this.#call;
    const { log, followers } = this.#context;
    followers.add(call);
    for await (const record of liveFrom(log, call, this.#next)) {
      this.#next++;
      if (this.#passes(record)) await this.#sendEvent(record);
      if (++this.#looked < this.#checkpointEvery) continue;
      this.#looked = 0;
      await this.#sendCheckpoint(at(record.position));
    }
    this.#from = this.#place();
  }

  get #record(): LogRecord | undefined {
    return this.#context.log.index.records[this.#next];
  }

  /** Returns the place before the next record, which may not be written yet. */
  #place(): Place {
    return { commit: this.#record?.position ?? this.#context.log.end, prepare: 0 };
  }

  #sendEvent(record: LogRecord): Promise<boolean> {
    const event = toReadEvent(this.#context.log.index.resolved(record, this.#resolveLinks));
    return send(this.#call, new streams.ReadResp().setEvent(event));
  }

  async #sendCheckpoint({ commit, prepare }: Place): Promise<void> {
    const checkpoint = new streams.ReadResp.Checkpoint();
    checkpoint.setCommitPosition(`${commit}`);
    checkpoint.setPreparePosition(`${prepare}`);
    await send(this.#call, new streams.ReadResp().setCheckpoint(checkpoint));
  }
}

/** Returns the place of an event that was handed out or that the filter leaves out. */
function at(position: number): Place {
  return { commit: position, prepare: position };
}

/**
 * Returns the index after the first event that `$all` shows at or after the position. The server takes that event for
 * the one which the subscriber has seen. If the position is that of a hidden record, it is a different event, which is
 * never sent.
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
    if (record !== undefined && isShown(record)) return next + 1;
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

/** Drops a live subscription, as the server does when the caller reads more slowly than events come. */
export function dropAsTooSlow(call: ReadCall): void {
  const why = 'Consumer too slow to handle event while live. Client resubscription required.';
  call.emit('error', fault(status.ABORTED, `Operation timed out: ${why}`));
}

/**
 * Yields every event from the index on as it is written, until the caller leaves or, on KurrentDB, many come at once.
 */
async function* liveFrom(log: DoubleLog, call: ReadCall, from: number): AsyncGenerator<LogRecord> {
  let notify = (): void => undefined;
  const wake = (): void => notify();
  const forget = log.onCommit(wake);
  call.on('cancelled', wake).on('error', wake);
  try {
    for (let next = from; !call.cancelled && !call.writableEnded; ) {
      const { records } = log.index;
      if (log.server.reportsEnd && records.length - next > LIVE_BUFFER) return;
      const record = records[next];
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
    call.off('cancelled', wake).off('error', wake);
  }
}
