import type { Log } from '../../base/log.ts';
import type { WebhookHealth } from '../queue/delivery.ts';
import { judgeHealth } from './health.ts';
import type { AppendHealthEvent, HealthVerdict } from './health-events.ts';

export interface HealthWatchOptions {
  readonly append: AppendHealthEvent;
  readonly log: Log;
  /** Blocked from before a switch-off is recorded until its lane is ended; free again where it can't be recorded. */
  readonly lanes: { setBlocked(prefix: string, blocked: boolean): void };
}

/** Judges webhooks whose deliveries fail, and records warnings and switch-offs. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  /** Webhooks that this process has warned of in their present failure streak. */
  readonly #warned = new Set<string>();
  readonly #underWay = new Map<string, Promise<boolean>>();
  /** What the last failure of each webhook calls for, until it is being recorded. */
  readonly #last = new Map<string, HealthVerdict>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** A delivery has succeeded: the streak is over. */
  recovered(prefix: string): void {
    this.#warned.delete(prefix);
    this.#last.delete(prefix);
  }

  /**
   * A delivery of the webhook has failed; `health` includes it. Resolves when what this calls for is recorded, could not
   * be, or a later failure calls for more; with the reason where the webhook is switched off by it. Never rejects.
   */
  async failed(
    lane: { readonly prefix: string; readonly accountId: number },
    health: WebhookHealth,
    nowMs: number,
  ): Promise<string | undefined> {
    const { prefix, accountId } = lane;
    const judgement = judgeHealth(health, nowMs);
    if (judgement === undefined) return;
    const verdict = { prefix, accountId, judgement, health };
    this.#last.set(prefix, verdict);
    const before = this.#underWay.get(prefix);
    if (before !== undefined) await before;
    if (this.#last.get(prefix) !== verdict) return;
    this.#last.delete(prefix);
    if (judgement.kind === 'warn' && this.#warned.has(prefix)) return;
    const recording = this.#record(verdict);
    this.#underWay.set(prefix, recording);
    const isRecorded = await recording;
    return isRecorded && judgement.kind === 'switch off' ? judgement.reason : undefined;
  }

  /** Where it can't be recorded, it is judged again with the next failure. */
  async #record(verdict: HealthVerdict): Promise<boolean> {
    const { append, log, lanes } = this.#options;
    const { prefix, judgement, health } = verdict;
    const off = judgement.kind === 'switch off';
    const evidence = {
      prefix,
      failed_in_a_row: health.failedInARow,
      failing_since_ms: health.failingSinceMs,
    };
    if (off) lanes.setBlocked(prefix, true);
    try {
      await append(verdict);
      if (off) this.#last.delete(prefix);
      else this.#warned.add(prefix);
      log.warn(evidence, off ? 'webhook switched off' : 'webhook keeps failing');
      return true;
    } catch (error) {
      if (off) lanes.setBlocked(prefix, false);
      log.error({ err: error, ...evidence }, `could not record that the webhook ${off ? 'is off' : 'fails'}`);
      return false;
    } finally {
      this.#underWay.delete(prefix);
    }
  }
}
