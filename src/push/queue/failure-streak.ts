import type { Attempt, AttemptOutcome, WebhookHealth } from './delivery.ts';
import { endOf, type Transition } from './next-state.ts';

const MAX_ANSWERS = 5;

/** A lane without failures. */
export function healthy(): WebhookHealth {
  return { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
}

/** The failure streaks of one batch of reports: each lane is read once, and written once where its streak changed. */
export class FailureStreaks {
  readonly #read: (prefix: string) => WebhookHealth;
  readonly #seen = new Map<string, WebhookHealth>();
  /** By prefix: the streaks that changed, as the last report left them. */
  readonly changed = new Map<string, WebhookHealth>();

  constructor(read: (prefix: string) => WebhookHealth) {
    this.#read = read;
  }

  /** Does what a delivery's transition does to the streak of its lane. */
  apply(prefix: string, { streak, attempt }: Pick<Transition, 'streak' | 'attempt'>): void {
    if (streak === 'end') this.end(prefix);
    if (streak === 'extend' && attempt !== undefined) this.extend(prefix, attempt);
  }

  end(prefix: string): void {
    const { failedInARow, failingSinceMs } = this.#of(prefix);
    if (failedInARow > 0 || failingSinceMs !== null) this.#set(prefix, healthy());
  }

  extend(prefix: string, attempt: Attempt): void {
    const before = this.#of(prefix);
    this.#set(prefix, {
      failedInARow: before.failedInARow + 1,
      failingSinceMs: before.failingSinceMs ?? endOf(attempt),
      lastAnswers: [answerOf(attempt.outcome), ...before.lastAnswers].slice(0, MAX_ANSWERS),
    });
  }

  #of(prefix: string): WebhookHealth {
    const known = this.#seen.get(prefix);
    if (known !== undefined) return known;
    const health = this.#read(prefix);
    this.#seen.set(prefix, health);
    return health;
  }

  #set(prefix: string, health: WebhookHealth): void {
    this.#seen.set(prefix, health);
    this.changed.set(prefix, health);
  }
}

/** What a receiver answered: its status, or the failure in words: `503`, `timeout: …`. */
export function answerOf(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : `${outcome.kind}: ${outcome.detail}`);
}

/** In short: its status, or the kind of the failure. */
export function shortAnswer(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : outcome.kind);
}

function statusOf(outcome: AttemptOutcome): string | undefined {
  const isJudgedByStatus = outcome.ok || outcome.kind === 'status';
  return isJudgedByStatus && outcome.answer !== null ? String(outcome.answer.status) : undefined;
}
