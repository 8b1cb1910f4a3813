import type { DoubleLog } from './double-log.ts';
import { type GroupSettings, parsePosition, positionText } from './group-settings.ts';
import { jsonOf, type LogRecord, systemRecord } from './log-record.ts';

/** How far a group has come, kept in a stream of its own: every event up to there has ended. */
export class GroupCheckpoint {
  readonly #log: DoubleLog;
  readonly #settings: GroupSettings;
  readonly #stream: string;
  /** Positions by sequence, behind the checkpoint. */
  readonly #positions: number[] = [];
  #position: number | undefined;
  /** Sequences up to this one are behind the checkpoint. */
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

  /** Where it stands; `undefined` where nothing was written yet. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Counts an event that the group has read, be it handed out or filtered. */
  looked({ position }: LogRecord): number {
    this.#positions.push(position);
    return this.#marked + this.#positions.length;
  }

  /** Writes the place before `lowest`, the first event that has not ended, if that is far or long enough away. */
  mark(lowest: number, { isTick }: { readonly isTick: boolean }): void {
    const ended = Math.min(lowest - 1, this.#marked + this.#positions.length) - this.#marked;
    const { checkPointAfter, minCheckPointCount, maxCheckPointCount } = this.#settings;
    const nowMs = Date.now();
    const isDue = isTick && ended >= minCheckPointCount && nowMs - this.#markedAtMs >= checkPointAfter;
    if (ended <= 0 || (!isDue && ended < maxCheckPointCount)) return;
    this.#position = this.#positions.splice(0, ended).at(-1);
    this.#marked += ended;
    this.#markedAtMs = nowMs;
    const event = systemRecord('SubscriptionCheckpoint', JSON.stringify(positionText(this.#position)));
    void this.#log.write({ stream: this.#stream, expected: 'any', events: [event] });
  }

  async forget(): Promise<void> {
    await this.#log.softDelete(this.#stream);
  }
}
