import { jsonOf, type LogRecord, type Resolved, TOMBSTONE_REVISION, UNLISTED } from './log-record.ts';

export type Expected = 'any' | 'no_stream' | bigint;

export type Decision =
  | { readonly kind: 'write' }
  /** These events are already recorded there. `last` is the last of them. */
  | { readonly kind: 'idempotent'; readonly last: LogRecord }
  /** The revision is wrong. `current` is -1 if there is no stream. */
  | { readonly kind: 'wrong'; readonly current: bigint }
  | { readonly kind: 'deleted' };

export type Readable =
  | { readonly kind: 'found'; readonly records: readonly LogRecord[] }
  | { readonly kind: 'missing' }
  | { readonly kind: 'deleted' };

/** All events in memory, in the order of the log and by stream. It decides writes like the server's own index. */
export class StreamIndex {
  readonly records: LogRecord[] = [];
  readonly #streams = new Map<string, LogRecord[]>();
  /**
   * The events written since the start by id, each at its first place. As in the server, only these are found by id.
   */
  readonly #recent = new Map<string, LogRecord>();

  add(record: LogRecord, { isRecent }: { readonly isRecent: boolean }): void {
    this.records.push(record);
    const stream = this.#streams.get(record.stream);
    if (stream === undefined) this.#streams.set(record.stream, [record]);
    else stream.push(record);
    if (isRecent && !this.#recent.has(record.id)) this.#recent.set(record.id, record);
  }

  /** Returns every event of the stream, including truncated ones and the tombstone. */
  all(stream: string): readonly LogRecord[] {
    return this.#streams.get(stream) ?? [];
  }

  /** The events that a reader of the stream gets. */
  readable(stream: string): Readable {
    const records = this.all(stream);
    const last = records.at(-1);
    if (last?.revision === TOMBSTONE_REVISION) return { kind: 'deleted' };
    if (last === undefined || stream === UNLISTED) return { kind: 'missing' };
    const metadata = this.all(`$$${stream}`).at(-1);
    const { $tb = 0 } = metadata === undefined ? {} : (jsonOf(metadata) as { readonly $tb?: number });
    return { kind: 'found', records: $tb > 0 ? records.slice($tb) : records };
  }

  /** Returns the event with its link's target, if that is asked for. */
  resolved(record: LogRecord, resolveLinks: boolean): Resolved {
    if (!resolveLinks || record.type !== '$>') return { event: record, link: undefined };
    return { event: this.#linked(record), link: record };
  }

  /**
   * Returns the index in `records` of the event at the position, or their length if it is after all of them. Like the
   * server it only accepts positions where an event begins.
   */
  indexAt(position: number): number | undefined {
    const place = this.indexFrom(position);
    const found = this.records[place];
    return found === undefined || found.position === position ? place : undefined;
  }

  /** Returns the index in `records` of the first event at or after the position. */
  indexFrom(position: number): number {
    let low = 0;
    let high = this.records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.records[middle]?.position ?? Infinity) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  decide(stream: string, expected: Expected, ids: readonly string[]): Decision {
    const records = this.all(stream);
    const current = records.at(-1)?.revision ?? -1n;
    if (current === TOMBSTONE_REVISION) return { kind: 'deleted' };
    if (expected === 'any') return this.#decideById(stream, ids) ?? { kind: 'write' };
    const after = expected === 'no_stream' ? -1n : expected;
    if (after === current) return { kind: 'write' };
    const there = records.slice(Number(after) + 1, Number(after) + 1 + ids.length);
    const last = there.at(-1);
    const isThere = last !== undefined && ids.every((id, place) => there[place]?.id === id);
    return isThere ? { kind: 'idempotent', last } : { kind: 'wrong', current };
  }

  #decideById(stream: string, ids: readonly string[]): Decision | undefined {
    const known = ids.map((id) => this.#recent.get(id)).map((record) => record?.stream === stream && record);
    if (known[0] === undefined || known[0] === false) return undefined;
    const last = known.at(-1);
    if (last === undefined || last === false || known.includes(false)) {
      return { kind: 'wrong', current: this.all(stream).at(-1)?.revision ?? -1n };
    }
    return { kind: 'idempotent', last };
  }

  /** Returns the event that a link (`revision@stream`) points to; `undefined` if it can't be read any more. */
  #linked(link: LogRecord): LogRecord | undefined {
    const text = Buffer.from(link.data).toString('utf8');
    const at = text.indexOf('@');
    const target = this.readable(text.slice(at + 1));
    if (target.kind !== 'found') return undefined;
    return target.records.find(({ revision }) => revision === BigInt(text.slice(0, at)));
  }
}
