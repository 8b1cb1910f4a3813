import type { Model, ModelKey } from './model.ts';

const DAY_MS = 86_400_000;
const MOST = { warned: { inARow: 25, forMs: DAY_MS }, off: { inARow: 50, forMs: 3 * DAY_MS } };
/** How many outcomes a process may record at the same time without knowing of the others. */
const SLACK = 12;
const SLACK_MS = 120_000;

/** The part of a dispatcher's report about a delivery that matters here. */
interface Reported {
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
  readonly failed: number;
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** The failure streak of each webhook, counted from the reports. */
export class Streaks {
  readonly #model: Model;
  readonly #now: () => number;
  readonly #streaks = new Map<string, Streak>();
  readonly #counted = new Set<string>();
  /** The former streaks of each key, with their start. */
  readonly #past = new Map<string, { readonly atMs: number; readonly failed: number }[]>();

  constructor(model: Model, now: () => number) {
    this.#model = model;
    this.#now = now;
  }

  /** Counts a report. `counts` is true if its claim is the delivery's last one. */
  see({ id, prefix, kind, attempt }: Reported, counts: boolean): void {
    if (attempt === null || attempt === undefined) return;
    if (kind === 'delivered') this.#note(prefix, undefined);
    const name = `${id}/${attempt.cycle}/${attempt.number}`;
    if (kind !== 'failed' || !counts || this.#counted.has(name)) return;
    this.#counted.add(name);
    const lastMs = attempt.startedAtMs + attempt.durationMs;
    const before = this.#streak(prefix) ?? { failed: 0, sinceMs: lastMs };
    this.#note(prefix, { ...before, failed: before.failed + 1, lastMs });
  }

  /** Returns the current streak. It ends when the webhook is enabled, as with a success. */
  #streak(prefix: string): Streak | undefined {
    const streak = this.#streaks.get(prefix);
    const enabledAtMs = this.#model.keyOf(prefix)?.key.enabledAtMs ?? 0;
    return streak !== undefined && streak.lastMs >= enabledAtMs ? streak : undefined;
  }

  #note(prefix: string, streak: Streak | undefined): void {
    if (streak === undefined) this.#streaks.delete(prefix);
    else this.#streaks.set(prefix, streak);
    const past = this.#past.get(prefix) ?? [];
    past.push({ atMs: this.#now(), failed: streak?.failed ?? 0 });
    this.#past.set(prefix, past);
  }

  /** Returns contradictions between a key's events, what is stored (`failedInARow`), and what was counted. */
  judge(key: ModelKey, failedInARow: number): string[] {
    const faults: string[] = [];
    const { prefix, warned, switchedOff } = key;
    const failed = this.#streak(prefix)?.failed ?? 0;
    if (failed !== failedInARow)
      faults.push(
        `the webhook of ${prefix} has ${failedInARow} failures in a row on record, and ${failed} were seen`,
      );
    for (const [what, events, { inARow, forMs }] of [
      ['warned of', warned, MOST.warned],
      ['switched off', switchedOff, MOST.off],
    ] as const) {
      for (const { atMs, failed, sinceMs } of events) {
        const isLong = sinceMs !== null && atMs - sinceMs >= forMs - SLACK_MS;
        if (failed < inARow && !isLong)
          faults.push(`the webhook of ${prefix} was ${what} after ${failed} failures since ${sinceMs}`);
        const counted = this.#most(prefix, atMs);
        if (failed > counted + SLACK && failed >= inARow)
          faults.push(
            `the webhook of ${prefix} was ${what} after ${failed} failures, and there were ${counted}`,
          );
        if (failed > MOST.off.inARow + SLACK)
          faults.push(`the webhook of ${prefix} was ${what} only after ${failed} failures`);
      }
    }
    for (const text of this.#judgePresent(key)) faults.push(`the webhook of ${prefix} ${text}`);
    return faults;
  }

  /** Returns the longest streak at about that time. */
  #most(prefix: string, atMs: number): number {
    return (this.#past.get(prefix) ?? [])
      .filter((each) => Math.abs(each.atMs - atMs) < SLACK_MS)
      .reduce((most, each) => Math.max(most, each.failed), 0);
  }

  #judgePresent({ prefix, isOn, webhook, endedAtMs, warned }: ModelKey): string[] {
    const streak = this.#streak(prefix);
    const { account } = this.#model.keyOf(prefix) ?? {};
    if (account === undefined || streak === undefined || this.#now() - streak.lastMs < SLACK_MS) return [];
    const { failed, sinceMs, lastMs } = streak;
    const wasEnded = endedAtMs.some((ms) => ms > sinceMs); // what was open at that time ended outside the streak
    if (!isOn || webhook === undefined || webhook.isDisabled || wasEnded) return [];
    // A hold ends the time of a streak.
    const forMs = this.#model.hadAccess(account, sinceMs, lastMs) ? lastMs - sinceMs : 0;
    const faults: string[] = [];
    if (failed > MOST.off.inARow + SLACK) faults.push(`has ${failed} failures in a row and is on`);
    if (forMs > MOST.off.forMs + SLACK_MS) faults.push(`fails since ${sinceMs} and is on`);
    const isWarned = warned.some(({ atMs }) => atMs > sinceMs - SLACK_MS);
    if (!isWarned && (failed > MOST.warned.inARow + SLACK || forMs > MOST.warned.forMs + SLACK_MS))
      faults.push(`has ${failed} failures since ${sinceMs}, and nobody was warned`);
    return faults;
  }
}
