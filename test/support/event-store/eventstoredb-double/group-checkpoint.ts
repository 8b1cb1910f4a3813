import type { DoubleLog } from './double-log.ts';
import { type GroupSettings, parsePosition, positionText } from './group-settings.ts';
import { jsonOf, type LogRecord, systemRecord } from './log-record.ts';

/** A group's checkpoint, in a separate stream. Every event up to it was answered. */
export class GroupCheckpoint {
  readonly #log: DoubleLog;
  readonly #settings: GroupSettings;
  readonly #stream: string;
  /** Positions by sequence, after the checkpoint. */
  readonly #positions: number[] = [];
  #position: number | undefined;
  /** Sequences up to this one are covered by the checkpoint. */
  #marked = -1;
  #markedAtMs = 0;

  constructor(log: DoubleLog, settings: GroupSettings) {
    this.#log = log;
    this.#settings = settings;
    this.#stream = `$persistentsubscription-$all::${settings.group}-checkpoint`;
    const stream = log.index.readable(this.#stream);
    const last = stream.kind === 'found' ? stream.records.at(-1) : undefined;
    this.#position = last === undefined ? undefined : parsePosition(String(jsonOf(last)));
  }

  /** The position of the checkpoint; `undefined` if none was written yet. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Counts an event that the group has read, whether it was handed out or filtered. */
  looked({ position }: LogRecord): number {
    this.#positions.push(position);
    return this.#marked + this.#positions.length;
  }

  /** Writes the position before `lowest`, the first unanswered event, if enough events or time have passed. */
  mark(lowest: number, { isTick }: { readonly isTick: boolean }): void {
    const ended = Math.min(lowest - 1, this.#marked + this.#positions.length) - this.#marked;
    const { checkPointAfter, minCheckPointCount, maxCheckPointCount } = this.#settings;
    const nowMs = Date.now();
    const isDue = isTick && ended >= minCheckPointCount && nowMs - this.#markedAtMs >= checkPointAfter;
    if (ended <= 0 || (!isDue && ended < maxCheckPointCount)) return;
    this.#position = this.#positions.splice(0, ended).at(-1);
    this.#marked += ended;
    this.#markedAtMs = nowMs;
    const event = systemRecord(this.#log.server.checkpointType, JSON.stringify(positionText(this.#position)));
    void this.#log.write({ stream: this.#stream, expected: 'any', events: [event] });
  }
}
