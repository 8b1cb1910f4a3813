import type { Clock } from '../../../base/clock.ts';
import { world } from '../../../base/world.ts';
import {
  type Attempt,
  type LogName,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookHealth,
} from '../../../push/queue/delivery.ts';
import type { WorkListener } from '../../../push/queue/delivery-queue.ts';
import { healthy } from '../../../push/queue/failure-streak.ts';
import { type DeliveryProgress, keptAttempt, nextState } from '../../../push/queue/next-state.ts';

type Change = Parameters<typeof nextState>[1];

export interface Entry {
  owed: NewDelivery;
  progress: DeliveryProgress;
  attempts: Attempt[];
}

/** What one delivery log holds: plain maps. Most questions are answered by looking at everything. */
export class MemoryDeliveries {
  name: LogName;
  readonly entries = new Map<string, Entry>();
  /** Of the entries those with a due time, which every process asks for again and again. */
  readonly due = new Map<string, Entry>();
  /** By transaction, when it was withdrawn last. */
  readonly withdrawn = new Map<number, number>();
  readonly streaks = new Map<string, WebhookHealth>();
  /** By lane, as of which time its streak was reset last. */
  readonly resets = new Map<string, number>();
  /** Of each opening. */
  readonly listeners = new Set<Set<WorkListener>>();

  constructor(clock: Clock) {
    this.name = { id: world.randomUUID(), startedAtMs: clock.now() };
  }

  notify(): void {
    for (const listeners of this.listeners) for (const listener of listeners) listener.notify();
  }

  healthOf(prefix: string): WebhookHealth {
    return this.streaks.get(prefix) ?? healthy();
  }

  reset(prefix: string, enabledAtMs: number): void {
    if ((this.resets.get(prefix) ?? 0) >= enabledAtMs) return;
    this.resets.set(prefix, enabledAtMs);
    if ((this.healthOf(prefix).failingSinceMs ?? 0) < enabledAtMs) this.streaks.delete(prefix);
  }

  all(wanted: (entry: Entry) => boolean = () => true): Entry[] {
    return [...this.entries.values()].filter(wanted);
  }

  put(entry: Entry): void {
    this.entries.set(entry.owed.id, entry);
    this.#moved(entry);
  }

  #moved(entry: Entry): void {
    if (entry.progress.dueAtMs === null) this.due.delete(entry.owed.id);
    else this.due.set(entry.owed.id, entry);
  }

  /** Carries out a change; `undefined` where it changes nothing. */
  change(entry: Entry, change: Change, nowMs: number) {
    const next = nextState(entry.progress, change, nowMs);
    if (next === undefined) return undefined;
    entry.progress = next.progress;
    this.#moved(entry);
    if (next.attempt !== undefined) {
      entry.attempts.push(structuredClone(keptAttempt(next.attempt, entry.owed.record)));
      entry.attempts = entry.attempts.slice(-MAX_ATTEMPTS_KEPT);
    }
    return next;
  }

  withdraw(transactionId: number, nowMs: number): void {
    this.withdrawn.set(transactionId, Math.max(nowMs, this.withdrawn.get(transactionId) ?? nowMs));
    for (const entry of this.all(({ owed }) => owed.transactionId === transactionId))
      this.change(entry, { kind: 'withdraw' }, nowMs);
  }
}

export function dueOf({ dueAtMs }: DeliveryProgress): number {
  return dueAtMs ?? Infinity;
}

export function leastOf(times: readonly number[]): number | undefined {
  const least = times.reduce((a, b) => Math.min(a, b), Infinity);
  return least === Infinity ? undefined : least;
}
