import type { Attempt, WebhookHealth } from './delivery-queue.ts';

const MAX_ANSWERS = 5;

/** A lane without a run of failures. */
export function healthy(): WebhookHealth {
  return { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
}

/** The runs of one batch of reports: each lane is read once, and is to be written once where its run changed. */
export class HealthRuns {
  readonly #read: (prefix: string) => WebhookHealth;
  readonly #seen = new Map<string, WebhookHealth>();
  /** By prefix: the runs that changed, as the last report left them. */
  readonly changed = new Map<string, WebhookHealth>();

  constructor(read: (prefix: string) => WebhookHealth) {
    this.#read = read;
  }

  delivered(prefix: string): void {
    const { failedInARow, failingSinceMs } = this.#of(prefix);
    if (failedInARow > 0 || failingSinceMs !== null) this.#set(prefix, healthy());
  }

  failed(prefix: string, attempt: Attempt): void {
    const before = this.#of(prefix);
    this.#set(prefix, {
      failedInARow: before.failedInARow + 1,
      failingSinceMs: before.failingSinceMs ?? endOf(attempt),
      lastAnswers: [answerOf(attempt), ...before.lastAnswers].slice(0, MAX_ANSWERS),
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

/** The moment an attempt ended, in whole milliseconds. */
export function endOf({ startedAtMs, durationMs }: Attempt): number {
  return Math.round(startedAtMs + durationMs);
}

function answerOf({ outcome }: Attempt): string {
  if (outcome.ok) return String(outcome.answer.status);
  if (outcome.kind === 'status' && outcome.answer !== null) return String(outcome.answer.status);
  return `${outcome.kind}: ${outcome.detail}`;
}
