import type {
  Attempt,
  ClaimedDelivery,
  Delivery,
  DeliveryReport,
  NewDelivery,
  WebhookHealth,
} from '../../../src/push/queue/delivery.ts';
import type { ClaimOptions } from './deliveries.ts';

/** A delivery as the model keeps it, with facts that the port never shows. */
interface Entry {
  shown: Delivery;
  endedAtMs: number | null;
  leaseToken: string | null;
}

/** When deliveries of a lane have failed since its last success, and since when failures count. */
interface Streak {
  failedAtMs: number[];
  timedFromMs: number;
  enabledAtMs: number;
}

/** The rules of the delivery queue, written again as naively as possible: with scans, without indexes and batches. */
export class DeliveryQueueModel {
  readonly entries = new Map<string, Entry>();
  readonly #withdrawn = new Set<number>();
  readonly #streaks = new Map<string, Streak>();

  enqueue(delivery: NewDelivery): boolean {
    if (this.entries.has(delivery.id)) return false;
    const base = { ...delivery, cycle: 1, attemptsInCycle: 0, attempts: [] };
    const withdrawn = this.#withdrawn.has(delivery.transactionId);
    const shown: Delivery = withdrawn
      ? { ...base, record: NO_RECORD, state: 'withdrawn', reason: WITHDRAWN, dueAtMs: null }
      : { ...base, state: 'pending', reason: null, dueAtMs: delivery.createdAtMs };
    this.entries.set(delivery.id, {
      shown,
      endedAtMs: withdrawn ? delivery.createdAtMs : null,
      leaseToken: null,
    });
    return !withdrawn;
  }

  /** Checks that a claim took the right deliveries, whichever it chose among equals, and takes them too. */
  claim(claimed: readonly ClaimedDelivery[], options: ClaimOptions): string | undefined {
    const due = [...this.entries.values()].filter(({ shown }) => isDue(shown, options.nowMs));
    const prefixes = new Set(due.map(({ shown }) => shown.prefix));
    const oldest = (lane: readonly Entry[]): number =>
      Math.min(...lane.map(({ shown }) => shown.dueAtMs ?? 0));
    const taken = new Set(claimed.map(({ id }) => id));
    let possible = 0;
    let latestServed = -Infinity;
    let earliestCut = Infinity;
    for (const prefix of prefixes) {
      const lane = due.filter(({ shown }) => shown.prefix === prefix);
      const mine = lane.filter(({ shown }) => taken.has(shown.id));
      const left = lane.filter(({ shown }) => !taken.has(shown.id));
      const most = Math.min(lane.length, Math.max(0, options.laneCapacity(prefix)));
      if (mine.length > most) return `lane ${prefix} gave ${mine.length} of ${most}`;
      const newest = Math.max(-Infinity, ...mine.map(({ shown }) => shown.dueAtMs ?? 0));
      if (newest > oldest(left)) return `lane ${prefix} gave a younger one before an older`;
      possible += most;
      if (mine.length > 0) latestServed = Math.max(latestServed, oldest(lane));
      if (mine.length < most) earliestCut = Math.min(earliestCut, oldest(lane));
    }
    if (latestServed > earliestCut) return 'a lane that waited less was served before another';
    if (claimed.length !== Math.min(possible, options.limit))
      return `${claimed.length} of ${possible} claimed`;
    return this.take(claimed, options.nowMs + options.leaseMs);
  }

  take(claimed: readonly ClaimedDelivery[], untilMs: number): string | undefined {
    for (const { leaseToken, attemptNumber, cycle, ...delivery } of claimed) {
      const entry = this.entries.get(delivery.id);
      if (entry?.shown.state !== 'pending') return `${delivery.id} was claimed and is not pending`;
      if (attemptNumber !== entry.shown.attemptsInCycle + 1) return `attempt ${attemptNumber}`;
      if (cycle !== entry.shown.cycle) return `cycle ${cycle}`;
      change(entry, { dueAtMs: untilMs });
      entry.leaseToken = leaseToken;
    }
    return undefined;
  }

  report(reports: readonly DeliveryReport[], nowMs: number): Map<string, WebhookHealth> {
    const changed = new Map<string, WebhookHealth>();
    for (const report of reports) {
      const prefix = this.#reportOne(report, nowMs);
      if (prefix !== undefined) changed.set(prefix, this.health(prefix));
    }
    return changed;
  }

  endLane(
    prefix: string,
    reason: string,
    nowMs: number,
    which: { readonly before?: number; readonly redelivered?: boolean },
  ): number {
    const { before = Infinity, redelivered } = which;
    const isMeant = ({ position, cycle }: Delivery): boolean =>
      position < before && (redelivered === undefined || redelivered === cycle > 1);
    const open = this.#of((shown) => shown.prefix === prefix && isOpen(shown) && isMeant(shown));
    for (const entry of open) end(entry, { state: 'failed', reason }, nowMs);
    return open.length;
  }

  withdraw(transactionId: number, nowMs: number): void {
    this.#withdrawn.add(transactionId);
    for (const entry of this.#of((shown) => shown.transactionId === transactionId && isOpen(shown))) {
      end(entry, { state: 'withdrawn', reason: WITHDRAWN }, nowMs);
    }
  }

  redeliver(id: string, { force, dueAtMs }: { force: boolean; dueAtMs: number }): string {
    const entry = this.entries.get(id);
    if (entry === undefined) return 'not known';
    const { transactionId, state, cycle } = entry.shown;
    if (this.#withdrawn.has(transactionId)) return 'withdrawn';
    if (isOpen(entry.shown)) return 'pending';
    if (state === 'delivered' && !force) return 'delivered';
    change(entry, { state: 'pending', reason: null, cycle: cycle + 1, attemptsInCycle: 0, dueAtMs });
    entry.endedAtMs = null;
    return 'due';
  }

  /** Removes the deliveries that a purge of the store removed, and returns what is wrong with that. */
  purge(gone: readonly string[], endedBeforeMs: number, limit: number): string | undefined {
    const ended = [...this.entries.values()].filter(
      ({ endedAtMs }) => (endedAtMs ?? Infinity) < endedBeforeMs,
    );
    if (gone.length !== Math.min(limit, ended.length)) return `${gone.length} of ${ended.length} purged`;
    const removed = ended.filter(({ shown }) => gone.includes(shown.id));
    const kept = ended.filter(({ shown }) => !gone.includes(shown.id));
    const ends = (entries: readonly Entry[]): number[] => entries.map(({ endedAtMs }) => endedAtMs ?? 0);
    if (removed.length !== gone.length) return 'something was purged that had not ended';
    if (Math.max(...ends(removed)) > Math.min(...ends(kept))) return 'a later one was purged first';
    for (const id of gone) this.entries.delete(id);
    return undefined;
  }

  health(prefix: string): WebhookHealth {
    const { failedAtMs, timedFromMs } = this.#streak(prefix);
    return {
      failedInARow: failedAtMs.length,
      failingSinceMs: failedAtMs.find((atMs) => atMs > timedFromMs) ?? null,
      lastAnswers: failedAtMs.slice(-5).map(() => '503'),
    };
  }

  resetHealth(prefix: string, enabledAtMs: number): void {
    const streak = this.#streak(prefix);
    streak.enabledAtMs = Math.max(streak.enabledAtMs, enabledAtMs);
    streak.failedAtMs = streak.failedAtMs.filter((atMs) => atMs >= enabledAtMs);
  }

  /** Returns when the next delivery is due, or a lease ends. */
  nextAtMs(nowMs: number): number | undefined {
    const times = [...this.entries.values()].flatMap(({ shown }) => shown.dueAtMs ?? []);
    const later = times.filter((atMs) => atMs > nowMs);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  /** Reports one delivery. Returns the lane whose failure streak it affects. */
  #reportOne(report: DeliveryReport, nowMs: number): string | undefined {
    const entry = this.entries.get(report.id);
    if (entry === undefined) return undefined;
    const { state, cycle, prefix } = entry.shown;
    const holds = state === 'pending' && entry.leaseToken === report.leaseToken;
    const late = report.kind === 'delivered' && state !== 'delivered' && cycle === report.attempt.cycle;
    const attempt = 'attempt' in report ? kept(report.attempt, entry.shown) : null;
    if (!holds && !late) {
      const { attempts, attemptsInCycle } = entry.shown;
      const isNext = attempt?.cycle === cycle && attempt.number === attemptsInCycle + 1;
      if (attempt !== null && isNext && (state === 'failed' || state === 'withdrawn'))
        change(entry, { attempts: [...attempts, attempt], attemptsInCycle: attemptsInCycle + 1 });
      return undefined;
    }
    const atMs = attempt === null ? nowMs : attempt.startedAtMs + attempt.durationMs;
    if (attempt !== null) {
      const { attempts, attemptsInCycle } = entry.shown;
      change(entry, { attempts: [...attempts, attempt], attemptsInCycle: attemptsInCycle + 1 });
    }
    entry.leaseToken = null;
    if (report.kind === 'retry') change(entry, { dueAtMs: report.dueAtMs });
    if (report.kind === 'released') change(entry, { dueAtMs: nowMs });
    if (report.kind === 'delivered') {
      end(entry, { state: 'delivered', reason: null }, atMs);
      const wasFailing = this.health(prefix).failedInARow > 0;
      this.#streak(prefix).failedAtMs = [];
      return wasFailing ? prefix : undefined;
    }
    if (report.kind !== 'failed') return undefined;
    end(entry, { state: 'failed', reason: report.reason }, atMs);
    if (attempt === null) return undefined;
    const streak = this.#streak(prefix);
    if (atMs >= streak.enabledAtMs) streak.failedAtMs.push(atMs);
    return prefix;
  }

  #streak(prefix: string): Streak {
    const streak = this.#streaks.get(prefix) ?? { failedAtMs: [], timedFromMs: 0, enabledAtMs: 0 };
    this.#streaks.set(prefix, streak);
    return streak;
  }

  #of(select: (shown: Delivery) => boolean): Entry[] {
    return [...this.entries.values()].filter(({ shown }) => select(shown));
  }
}

const WITHDRAWN = 'the transaction was voided or cancelled';
const NO_RECORD = '';

function isDue({ dueAtMs }: Delivery, nowMs: number): boolean {
  return dueAtMs !== null && dueAtMs <= nowMs;
}

/** Returns the attempt as it is kept: a delivery without its record keeps nothing of the receiver's answer. */
function kept(attempt: Attempt | null, { record }: Delivery): Attempt | null {
  if (attempt === null || record !== NO_RECORD || attempt.outcome.answer === null) return attempt;
  const answer = { status: attempt.outcome.answer.status, headers: {}, body: '' };
  return { ...attempt, outcome: { ...attempt.outcome, answer } };
}

function isOpen({ state }: Delivery): boolean {
  return state === 'pending';
}

function change(entry: Entry, to: Partial<Delivery>): void {
  entry.shown = { ...entry.shown, ...to };
}

function end(entry: Entry, to: Pick<Delivery, 'state' | 'reason'>, atMs: number): void {
  change(entry, { ...to, dueAtMs: null });
  entry.endedAtMs = atMs;
  entry.leaseToken = null;
}
