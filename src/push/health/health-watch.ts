import type { Log } from '../../base/log.ts';
import type { WebhookHealth } from '../queue/delivery-queue.ts';
import { judgeHealth } from './health.ts';
import type { AppendHealthEvent, HealthVerdict } from './health-events.ts';

export interface HealthWatchOptions {
  readonly append: AppendHealthEvent;
  readonly log: Log;
  /** Called when a webhook is about to be switched off, and again when that is recorded or has failed. */
  readonly onSwitchOff: (verdict: HealthVerdict, done: 'started' | 'recorded' | 'failed') => void;
}

/** Judges webhooks whose deliveries fail, and records warnings and switch-offs without delaying the sending. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  /** Webhooks that this process has warned of in their present failure streak. */
  readonly #warned = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();
  /** What failures call for that came while something was being recorded: the last of each webhook. */
  readonly #next = new Map<string, HealthVerdict>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** A delivery has succeeded: the streak is over. */
  recovered(prefix: string): void {
    this.#warned.delete(prefix);
    this.#next.delete(prefix);
  }

  /** A delivery of the webhook has failed; `health` includes it. */
  failed(
    lane: { readonly prefix: string; readonly accountId: number },
    health: WebhookHealth,
    nowMs: number,
  ) {
    const judgement = judgeHealth(health, nowMs);
    if (judgement.kind !== 'nothing') this.#follow({ ...lane, judgement, health });
  }

  /** Waits until nothing is being recorded. */
  async whenIdle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.values());
  }

  #follow(verdict: HealthVerdict): void {
    const { prefix, judgement } = verdict;
    if (judgement.kind === 'warn' && this.#warned.has(prefix)) return;
    if (this.#underWay.has(prefix)) {
      this.#next.set(prefix, verdict);
      return;
    }
    const work = this.#record(verdict).then(() => {
      this.#underWay.delete(prefix);
      const next = this.#next.get(prefix);
      this.#next.delete(prefix);
      if (next !== undefined) this.#follow(next);
    });
    this.#underWay.set(prefix, work);
  }

  /** Where it can't be recorded, it is judged again with the next failure. */
  async #record(verdict: HealthVerdict): Promise<void> {
    const { append, log, onSwitchOff } = this.#options;
    const { prefix, judgement, health } = verdict;
    const off = judgement.kind === 'switch off';
    const evidence = {
      prefix,
      failed_in_a_row: health.failedInARow,
      failing_since_ms: health.failingSinceMs,
    };
    try {
      if (off) onSwitchOff(verdict, 'started');
      await append(verdict);
      if (off) this.#next.delete(prefix);
      else this.#warned.add(prefix);
      log.warn(evidence, off ? 'webhook switched off' : 'webhook keeps failing');
      if (off) onSwitchOff(verdict, 'recorded');
    } catch (error) {
      log.error({ err: error, ...evidence }, `could not record that the webhook ${off ? 'is off' : 'fails'}`);
      if (off) onSwitchOff(verdict, 'failed');
    }
  }
}
