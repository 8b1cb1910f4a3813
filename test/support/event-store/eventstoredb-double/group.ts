import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import { groupFault, type SubscriptionCall, toSubscriptionEvent } from './answers.ts';
import type { DoubleLog } from './double-log.ts';
import { isShown } from './event-filter.ts';
import { GroupCheckpoint } from './group-checkpoint.ts';
import { type GroupSettings, type GroupStatistics, parsePosition } from './group-settings.ts';
import type { LogRecord, Resolved } from './log-record.ts';
import { ParkedStream } from './parked-stream.ts';

/** An event that is handed out or waits for that. */
interface Message {
  /** The id that consumers answer with: that of the event or, if it is replayed, of the link. */
  readonly id: string;
  readonly resolved: Resolved;
  readonly retryCount: number;
  /** Its number among the events that the group has read; `undefined` for a replayed one. */
  readonly sequence: number | undefined;
  readonly sentTo: GroupClient | undefined;
  readonly expiresMs: number;
}

export interface GroupClient {
  readonly call: SubscriptionCall;
  readonly name: string;
  readonly bufferSize: number;
  inFlight: number;
}

/**
 * One persistent subscription to `$all`: hands events to its clients in turn, counts retries and times out as the
 * server does. The server fills a buffer ahead of its clients; this reads the log only as they take events.
 */
export class Group {
  readonly settings: GroupSettings;
  readonly #log: DoubleLog;
  readonly #parked: ParkedStream;
  readonly #checkpoint: GroupCheckpoint;
  readonly #forgetLog: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #out = new Map<string, Message>();
  #retry: Message[] = [];
  #clients: GroupClient[] = [];
  /** The next record to read, by its index in the log. */
  #next: number;
  /** The event that is never handed out; see `#firstOfPage`. */
  readonly #skipped: LogRecord | undefined;
  #sent = 0;

  constructor(log: DoubleLog, settings: GroupSettings, { tickMs }: { readonly tickMs: number }) {
    this.settings = settings;
    this.#log = log;
    this.#parked = new ParkedStream(log, settings.group);
    this.#checkpoint = new GroupCheckpoint(log, settings);
    const { position } = this.#checkpoint;
    this.#next = log.index.indexFrom(position ?? parsePosition(settings.startPosition));
    this.#skipped = position === undefined ? undefined : this.#firstOfPage();
    this.#forgetLog = log.onCommit(() => this.#push());
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  add(client: GroupClient): void {
    this.#clients.push(client);
    this.#push();
  }

  /** Removes a client. Its unanswered events are handed out again at once, whatever their retry counts. */
  remove(client: GroupClient): void {
    this.#clients = this.#clients.filter((other) => other !== client);
    for (const message of this.#out.values()) if (message.sentTo === client) this.#again(message);
    this.#push();
  }

  /** Acknowledges events. As on the server, a client may answer another client's event. */
  ack(ids: readonly string[]): void {
    for (const id of ids) this.#end(id);
    this.#settle();
  }

  park(ids: readonly string[], reason: string): void {
    for (const id of ids) {
      const message = this.#out.get(id);
      if (message === undefined) continue;
      this.#end(id);
      void this.#parked.add(message.resolved, `Client explicitly NAK'ed message.\n${reason}`);
    }
    this.#settle();
  }

  async replayParked(): Promise<void> {
    for (const resolved of await this.#parked.takeAll()) {
      if (resolved.event === undefined && !this.#log.server.replaysGone) continue;
      const id = resolved.link?.id ?? '';
      const fresh = { id, resolved, retryCount: 0, sequence: undefined, sentTo: undefined, expiresMs: 0 };
      this.#retry.push(fresh);
    }
    this.#push();
  }

  statistics(): GroupStatistics {
    const clients = this.#clients.map(({ name, inFlight, bufferSize }) => {
      return { name, inFlight, room: bufferSize - inFlight };
    });
    const known = this.#log.index.records.findLast(isShown)?.position;
    const checkpoint = this.#checkpoint.position;
    const counts = { sent: this.#sent, outstanding: this.#out.size, retrying: this.#retry.length };
    return { clients, ...counts, parked: this.#parked.count(), checkpoint, known };
  }

  /** Stops handing out events. `isDropped` tells clients why. */
  close({ isDropped }: { readonly isDropped: boolean }): void {
    clearInterval(this.#timer);
    this.#forgetLog();
    const clients = this.#clients;
    this.#clients = [];
    if (!isDropped) return;
    for (const { call } of clients) {
      call.emit('error', groupFault('persistent-subscription-dropped', this.settings.group));
    }
  }

  /** Takes the first event that it reads for the one at its checkpoint, and leaves it out. */
  #firstOfPage(): LogRecord | undefined {
    const { readBatchSize, maxCheckPointCount } = this.settings;
    const window = Math.max(readBatchSize, maxCheckPointCount);
    return this.#log.index.records.slice(this.#next, this.#next + window).find(isShown);
  }

  #push(): void {
    for (;;) {
      const client = this.#clients.find(({ inFlight, bufferSize }) => inFlight < bufferSize);
      if (client === undefined) return;
      const message = this.#retry.shift() ?? this.#nextOfLog();
      if (message === undefined) return;
      this.#clients = [...this.#clients.filter((other) => other !== client), client];
      this.#sent++;
      if (!this.#out.has(message.id)) {
        const expiresMs = Date.now() + this.settings.messageTimeout;
        this.#out.set(message.id, { ...message, sentTo: client, expiresMs });
        client.inFlight++;
      } // if two events have the same id, both are handed out and one answer is expected
      const event = toSubscriptionEvent(message.resolved, message.retryCount);
      client.call.write(new persistent.ReadResp().setEvent(event));
    }
  }

  #nextOfLog(): Message | undefined {
    for (;;) {
      const record = this.#log.index.records[this.#next];
      if (record === undefined) return undefined;
      this.#next++;
      if (isShown(record) && record !== this.#skipped) {
        return this.#fresh(record, this.#checkpoint.looked(record));
      }
    }
  }

  #fresh(record: LogRecord, sequence: number): Message {
    const resolved = this.#log.index.resolved(record, this.settings.resolveLinkTos);
    return { id: record.id, resolved, retryCount: 0, sequence, sentTo: undefined, expiresMs: 0 };
  }

  /** Queues a message again, in the order of the log. Replayed ones come last. */
  #again(message: Message): void {
    this.#end(message.id);
    const again = { ...message, retryCount: message.retryCount + 1 };
    const { sequence } = again;
    const place = this.#retry.findIndex((other) => (other.sequence ?? Infinity) > (sequence ?? Infinity));
    this.#retry.splice(place === -1 ? this.#retry.length : place, 0, again);
  }

  #end(id: string): void {
    const message = this.#out.get(id);
    if (message?.sentTo !== undefined) message.sentTo.inFlight--;
    this.#out.delete(id);
  }

  #tick(): void {
    const nowMs = Date.now();
    for (const message of this.#out.values()) if (message.expiresMs <= nowMs) this.#again(message);
    this.#push();
    this.#checkpoint.mark(this.#lowest(), { isTick: true });
  }

  #settle(): void {
    this.#checkpoint.mark(this.#lowest(), { isTick: false });
    this.#push();
  }

  /** Returns the first event that is handed out or waits for that. */
  #lowest(): number {
    const sequences = [...this.#out.values(), ...this.#retry].map(({ sequence }) => sequence ?? Infinity);
    return Math.min(...sequences);
  }
}
