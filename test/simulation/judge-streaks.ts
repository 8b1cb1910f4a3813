import type { ModelKey } from './model.ts';

const MOST_IN_A_ROW = 50;
const LONGEST_MS = 3 * 86_400_000;
/** Outcomes that are recorded at the same time, in a process that has not heard of the others. */
const SLACK = 12;
const SLACK_MS = 120_000;

/** What a dispatcher reports of a delivery, as far as it matters here. */
export interface Reported {
  readonly id: string;
  readonly prefix: string;
  readonly kind: string;
  readonly attempt?: {
    readonly cycle: number;
    readonly number: number;
    readonly startedAtMs: number;
    readonly durationMs: number;
  } | null;
}

interface Streak {
  failed: number;
  sinceMs: number;
  lastMs: number;
}

/** The failure streak of each webhook, counted anew from what is reported. */
export class Streaks {
  readonly #streaks = new Map<string, Streak>();
  readonly #counted = new Set<string>();
  /** By key, how many there were since when. */
  readonly #past = new Map<string, { readonly atMs: number; readonly failed: number }[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** `counts`: whether its claim is the delivery's last. */
  see({ id, prefix, kind, attempt }: Reported, counts: boolean): void {
    if (attempt === null || attempt === undefined) return;
    const name = `${id}/${attempt.cycle}/${attempt.number}`;
    const endMs = attempt.startedAtMs + attempt.durationMs;
    if (kind === 'delivered') this.reset(prefix);
    if (kind !== 'failed' || !counts || this.#counted.has(name)) return;
    this.#counted.add(name);
    const streak = this.#streaks.get(prefix) ?? { failed: 0, sinceMs: endMs, lastMs: endMs };
    this.#streaks.set(prefix, { ...streak, failed: streak.failed + 1, lastMs: endMs });
    this.#note(prefix, streak.failed + 1);
  }

  /** It was enabled then. What failed later counts on: some processes hear of it late, or again when they start. */
  reset(prefix: string, enabledAtMs = Number.POSITIVE_INFINITY): void {
    if ((this.#streaks.get(prefix)?.lastMs ?? 0) >= enabledAtMs) return;
    this.#streaks.delete(prefix);
    this.#note(prefix, 0);
  }

  #note(prefix: string, failed: number): void {
    const past = this.#past.get(prefix) ?? [];
    past.push({ atMs: this.#now(), failed });
    this.#past.set(prefix, past);
  }

  /** Contradictions between what a key's events say and what was counted. */
  judge(key: ModelKey, nowMs: number): string[] {
    const faults: string[] = [];
    for (const { atMs, failed, sinceMs } of key.switchedOff) {
      const isLong = sinceMs !== null && atMs - sinceMs >= LONGEST_MS - SLACK_MS;
      if (failed < MOST_IN_A_ROW && !isLong)
        faults.push(
          `the webhook of ${key.prefix} was switched off after ${failed} failures since ${sinceMs}`,
        );
      const counted = (this.#past.get(key.prefix) ?? [])
        .filter((each) => each.atMs < atMs + SLACK_MS && each.atMs > atMs - SLACK_MS)
        .reduce((most, each) => Math.max(most, each.failed), 0);
      if (failed > counted + SLACK && failed >= MOST_IN_A_ROW)
        faults.push(
          `the webhook of ${key.prefix} was switched off after ${failed} failures, and there were ${counted}`,
        );
      if (failed > MOST_IN_A_ROW + SLACK)
        faults.push(`the webhook of ${key.prefix} was switched off only after ${failed} failures`);
    }
    const streak = this.#streaks.get(key.prefix);
    const isOn = key.isOn && key.webhook !== undefined && !key.webhook.isDisabled;
    if (!isOn || streak === undefined || nowMs - streak.lastMs < SLACK_MS || key.enabledAtMs > streak.sinceMs)
      return faults;
    if (streak.failed > MOST_IN_A_ROW + SLACK)
      faults.push(`the webhook of ${key.prefix} has ${streak.failed} failures in a row and is on`);
    return faults;
  }
}
