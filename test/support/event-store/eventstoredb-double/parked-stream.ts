import type { DoubleLog } from './double-log.ts';
import { type Resolved, systemRecord } from './log-record.ts';

/** The access rights of the parked stream, written with its truncation. */
const ACL = { $r: '$admins', $w: '$admins', $d: '$admins', $mr: '$admins', $mw: '$admins' };

/** A group's parked events: a stream of links, truncated when they are replayed. */
export class ParkedStream {
  readonly #log: DoubleLog;
  readonly #name: string;

  constructor(log: DoubleLog, group: string) {
    this.#log = log;
    this.#name = `$persistentsubscription-$all::${group}-parked`;
  }

  /** Parks the event, not the link by which it was replayed; for a link whose event is gone, the link's target. */
  async add({ event, link }: Resolved, reason: string): Promise<void> {
    const target = event === undefined ? Buffer.from(link?.data ?? []) : `${event.revision}@${event.stream}`;
    const number = Number((link ?? event)?.revision);
    const added = new Date().toISOString().replace('Z', '0000+00:00');
    // The server leaves out a number that is 0.
    const metadata = { added, reason, ...(number > 0 && { subscriptionEventNumber: number }) };
    const parked = systemRecord('$>', String(target), { isJson: false, metadata: JSON.stringify(metadata) });
    await this.#log.write({ stream: this.#name, expected: 'any', events: [parked] });
  }

  /** Returns the links and truncates the stream. */
  async takeAll(): Promise<Resolved[]> {
    const stream = this.#log.index.readable(this.#name);
    if (stream.kind !== 'found') return [];
    const end = this.#log.index.all(this.#name).length;
    const metadata = systemRecord('$metadata', JSON.stringify({ $tb: end, $acl: ACL }));
    await this.#log.write({ stream: `$$${this.#name}`, expected: 'any', events: [metadata] });
    return stream.records.map((link) => this.#log.index.resolved(link, true));
  }

  count(): number {
    const stream = this.#log.index.readable(this.#name);
    return stream.kind === 'found' ? stream.records.length : 0;
  }
}
