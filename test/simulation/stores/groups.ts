import type { Clock } from '../../../src/base/clock.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { Signal } from '../../../src/base/signal.ts';
import type { SqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import type {
  ConsumeOptions,
  GroupConsumer,
  GroupEvent,
  GroupSettings,
  ParkedEvent,
  PersistentSubscriptions,
} from '../../../src/event-store/event-store.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import type { MemoryLog } from '../../support/engines/memory-log.ts';

interface Message {
  readonly position: number;
  state: 'out' | 'retry' | 'parked';
  retryCount: number;
  dueAtMs: number;
  holder: object | undefined;
  reason: string;
  parkedAtMs: number;
}

class Group {
  settings: GroupSettings;
  position = 0;
  readonly messages = new Map<number, Message>();

  constructor(settings: GroupSettings) {
    this.settings = settings;
  }
}

/** Draws the faults that a server's subscription may have. */
export interface GroupFaults {
  /** True if an event is handed out again although its consumer holds it. */
  repeats(): boolean;
  /** Returns events in the order in which they are handed out. */
  shuffled<T>(list: readonly T[]): T[];
}

const HEARTBEAT_MS = 1_000;

/** Persistent subscriptions in memory, with the promises of EventStoreDB: at least once, in any order. */
export class MemoryGroups {
  readonly groups = new Map<string, Group>();
  readonly waiting = new Set<Signal>();
  readonly log: SqliteEventStore;
  readonly now: () => number;
  readonly faults: GroupFaults;

  constructor(log: MemoryLog, clock: Clock, faults: GroupFaults) {
    this.log = log.store(clock);
    this.now = () => clock.now();
    this.faults = faults;
    this.log.commits.add(this);
  }

  notify(): void {
    for (const signal of this.waiting) signal.notify();
  }

  group(name: string): Group {
    const group = this.groups.get(name);
    if (group === undefined) throw new FuelError('REFUSED', `there is no group ${name}: ensure it first`);
    return group;
  }

  claim(name: string, holder: object, bufferSize: number): { events: GroupEvent[]; nextDueMs: number } {
    const group = this.group(name);
    const nowMs = this.now();
    const untilMs = nowMs + group.settings.ackTimeoutMs;
    const held = [...group.messages.values()].filter((message) => message.holder === holder).length;
    const events: GroupEvent[] = [];
    let left = bufferSize - held;
    for (const message of group.messages.values()) {
      if (left <= 0) break;
      if (message.state === 'parked' || message.dueAtMs > nowMs) continue;
      const event = this.event(message.position);
      if (event === undefined) {
        group.messages.delete(message.position);
        continue;
      }
      if (message.state === 'out') message.retryCount += 1;
      Object.assign(message, { state: 'out', holder, dueAtMs: untilMs });
      events.push({ event, retryCount: message.retryCount });
      left -= 1;
    }
    const head = this.log.end();
    while (left > 0 && group.position < head) {
      group.position += 1;
      const event = this.event(group.position);
      if (event === undefined || !group.settings.prefixes.some((prefix) => event.stream.startsWith(prefix)))
        continue;
      const message = {
        position: group.position,
        state: 'out',
        retryCount: 0,
        reason: '',
        parkedAtMs: 0,
      } as const;
      group.messages.set(group.position, { ...message, holder, dueAtMs: untilMs });
      events.push({ event, retryCount: 0 });
      left -= 1;
    }
    for (const { event } of events) {
      // A server may lose an answer on the connection and soon hand the event to another consumer.
      const message = group.messages.get(event.position);
      if (message !== undefined && this.faults.repeats()) message.dueAtMs = nowMs + 5;
    }
    let nextDueMs = Number.POSITIVE_INFINITY;
    for (const { state, dueAtMs } of group.messages.values())
      if (state !== 'parked') nextDueMs = Math.min(nextDueMs, dueAtMs);
    return { events: this.faults.shuffled(events), nextDueMs };
  }

  event(position: number): RecordedEvent | undefined {
    return this.log.readAt([position])[0];
  }

  /** Takes back the events that a consumer holds, or only those at `positions`, which count as never handed out. */
  release(holder: object, positions?: ReadonlySet<number>): void {
    for (const { messages } of this.groups.values())
      for (const message of messages.values()) {
        if (message.holder !== holder || message.state !== 'out') continue;
        if (positions?.has(message.position) === false) continue;
        if (positions === undefined) message.retryCount += 1;
        Object.assign(message, { state: 'retry', holder: undefined, dueAtMs: this.now() });
      }
    this.notify();
  }

  parked(name: string): ParkedEvent[] {
    const messages = [...(this.groups.get(name)?.messages.values() ?? [])];
    return messages
      .filter(({ state }) => state === 'parked')
      .sort((a, b) => a.parkedAtMs - b.parkedAtMs)
      .flatMap(({ position, reason, parkedAtMs }) => {
        const event = this.event(position);
        return event === undefined ? [] : [{ event, reason, parkedAtMs }];
      });
  }
}

/** Opens the groups for one process. */
export function openMemoryGroups(
  shared: MemoryGroups,
): PersistentSubscriptions & { readonly consumers: Set<object> } {
  const consumers = new Set<object>();
  const answer = (name: string, holder: object, position: number): Message | undefined => {
    const message = shared.group(name).messages.get(position);
    const isHeld = message?.state === 'out' && message.holder === holder && shared.now() < message.dueAtMs;
    return isHeld ? message : undefined;
  };
  let isClosed = false;
  const step = async (): Promise<void> => {
    if (isClosed) throw new FuelError('STORE_CLOSED', 'the subscriptions are closed');
  };
  return {
    consumers,
    async ensureGroup(name, settings) {
      await step();
      const group = shared.groups.get(name);
      if (group === undefined) shared.groups.set(name, new Group(settings));
      else group.settings = settings;
    },
    consume(name: string, { bufferSize, signal, onState }: ConsumeOptions): GroupConsumer {
      const holder = {};
      consumers.add(holder);
      return {
        async *[Symbol.asyncIterator]() {
          const changed = new Signal();
          const waiting = new Set<number>();
          const notify = (): void => changed.notify();
          signal.addEventListener('abort', notify);
          shared.waiting.add(changed);
          onState?.(undefined);
          try {
            while (!signal.aborted) {
              changed.reset();
              await step();
              const { events, nextDueMs } = shared.claim(name, holder, bufferSize);
              for (const event of events) waiting.add(event.event.position);
              for (const event of events) {
                if (signal.aborted) break;
                waiting.delete(event.event.position);
                if (answer(name, holder, event.event.position)) yield event;
              }
              if (events.length === 0 && !signal.aborted)
                await changed.wait(Math.min(HEARTBEAT_MS, Math.max(1, nextDueMs - shared.now())));
            }
          } finally {
            signal.removeEventListener('abort', notify);
            shared.waiting.delete(changed);
            shared.release(holder, waiting);
          }
        },
        async ack(events) {
          await step();
          for (const { event } of events)
            if (answer(name, holder, event.position)) shared.group(name).messages.delete(event.position);
          shared.notify();
        },
        async retry({ event }, { reason, delayMs }) {
          await step();
          const message = answer(name, holder, event.position);
          const dueAtMs = shared.now() + delayMs;
          const retryCount = (message?.retryCount ?? 0) + 1;
          if (message)
            Object.assign(message, { state: 'retry', holder: undefined, reason, dueAtMs, retryCount });
          shared.notify();
        },
        async park({ event }, reason) {
          await step();
          const message = answer(name, holder, event.position);
          if (message)
            Object.assign(message, { state: 'parked', holder: undefined, reason, parkedAtMs: shared.now() });
          shared.notify();
        },
      };
    },
    async parked(name, limit = 1_000) {
      await step();
      return shared.parked(name).slice(0, limit);
    },
    async status(name) {
      await step();
      const group = shared.groups.get(name);
      if (group === undefined) return undefined;
      const states = [...group.messages.values()];
      const least = states.reduce(
        (lowest, { state, position }) => (state === 'parked' ? lowest : Math.min(lowest, position - 1)),
        group.position,
      );
      return { position: least, parked: states.filter(({ state }) => state === 'parked').length };
    },
    async replayParked(name) {
      await step();
      let count = 0;
      for (const message of shared.group(name).messages.values()) {
        if (message.state !== 'parked') continue;
        Object.assign(message, { state: 'retry', dueAtMs: shared.now(), retryCount: 0 });
        count += 1;
      }
      shared.notify();
      return count;
    },
    async close() {
      isClosed = true;
      shared.notify();
    },
  };
}
