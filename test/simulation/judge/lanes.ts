import type { Entry } from '../stores/stored-deliveries.ts';

export type { Entry };

type Attempt = Entry['attempts'][number];

/** Returns until when the receiver's answer asked to wait, by the clock of the process. */
export function askedUntilMs({ startedAtMs, durationMs, outcome }: Attempt): number | undefined {
  const text = outcome.ok ? undefined : outcome.answer?.headers['retry-after'];
  if (text === undefined) return undefined;
  return /^\d+$/.test(text) ? startedAtMs + durationMs + 1000 * Number(text) : Date.parse(text);
}

/** The attempts of each webhook, in order. */
export class Lanes {
  readonly attempts = new Map<string, Attempt[]>();

  constructor(deliveries: Iterable<Entry>) {
    for (const { owed, attempts } of deliveries) {
      const all = this.attempts.get(owed.prefix) ?? [];
      all.push(...attempts);
      this.attempts.set(owed.prefix, all);
    }
    for (const all of this.attempts.values()) all.sort((a, b) => a.startedAtMs - b.startedAtMs);
  }

  /** Returns the longest time without an attempt, leaving out waits that the receiver asked for. */
  idleMs(prefix: string, fromMs: number, toMs: number): number {
    let [sinceMs, idleMs] = [fromMs, 0];
    for (const attempt of this.attempts.get(prefix) ?? []) {
      if (attempt.startedAtMs >= toMs) break;
      idleMs = Math.max(idleMs, attempt.startedAtMs - sinceMs);
      sinceMs = Math.max(sinceMs, attempt.startedAtMs, askedUntilMs(attempt) ?? 0);
    }
    return Math.max(idleMs, toMs - sinceMs);
  }
}
