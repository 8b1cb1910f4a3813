import type { Log } from '../../base/log.ts';
import type { WebhookHealth } from '../queue/delivery.ts';
import { judgeHealth } from './health.ts';
import type { AppendHealthEvent, HealthVerdict } from './health-events.ts';

interface HealthWatchOptions {
  readonly append: AppendHealthEvent;
  readonly log: Log;
  /** A lane is blocked from before the switch-off is recorded until the lane is ended, or until it could not be recorded. */
  readonly lanes: { setBlocked(prefix: string, blocked: boolean): void };
}

/** Judges webhooks whose deliveries fail, and records warnings and switch-offs. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  /** Webhooks of which this process has warned in their present failure streak. */
  readonly #warned = new Set<string>();
  readonly #underWay = new Map<string, Promise<boolean>>();
  /** The verdict on the last failure of each webhook, until it is being recorded. */
  readonly #last = new Map<string, HealthVerdict>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Ends the streak: a delivery has succeeded. */
  recovered(prefix: string): void {
    this.#warned.delete(prefix);
    this.#last.delete(prefix);
  }

  /**
   * Judges the webhook after a failed delivery, which `health` includes. Resolves when the verdict is recorded, could not be
   * recorded, or is superseded by that on a later failure; with the reason if it has switched off the webhook. Never
   * rejects.
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

  /** Records a verdict. If that fails, the webhook is judged again at its next failure. */
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
      const isLong = await append(verdict);
      if (!isLong) {
        if (off) lanes.setBlocked(prefix, false);
        return false;
      }
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
