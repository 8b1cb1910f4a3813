import type { Log } from '../../base/log.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { WebhookHealth } from '../queue/delivery.ts';
import { judgeHealth } from './health.ts';
import type { AppendHealthEvent, HealthVerdict } from './health-events.ts';

interface HealthWatchOptions {
  readonly append: AppendHealthEvent;
  readonly log: Log;
}

/** A webhook, and which event has ended its deliveries last: another one means that it was switched off since. */
interface WatchedLane {
  readonly prefix: string;
  readonly accountId: number;
  readonly endedAt: Position | undefined;
}

/** Judges webhooks whose deliveries fail, and records warnings and switch-offs. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  /** Webhooks of which this process has warned in their present failure streak, as they were then. */
  readonly #warned = new Map<string, WatchedLane['endedAt']>();
  readonly #underWay = new Map<string, Promise<void>>();
  /** The verdict on the last failure of each webhook, until it is being recorded. */
  readonly #last = new Map<string, HealthVerdict>();
  readonly #switchingOff = new Map<string, WatchedLane['endedAt']>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Ends the streak: a delivery has succeeded. */
  recovered(prefix: string): void {
    this.#warned.delete(prefix);
    this.#last.delete(prefix);
  }

  /** True if a switch-off is being recorded, or its event is not seen yet. Nothing is sent to the webhook meanwhile. */
  isSwitchingOff({ prefix, endedAt }: Pick<WatchedLane, 'prefix' | 'endedAt'>): boolean {
    const isSame = this.#switchingOff.has(prefix) && this.#switchingOff.get(prefix) === endedAt;
    if (!isSame) this.#switchingOff.delete(prefix);
    return isSame;
  }

  /**
   * Judges the webhook after a failed delivery, which `health` includes. Resolves when the verdict is recorded, could not be
   * recorded, or is superseded by that on a later failure. Never rejects.
   */
  async failed(lane: WatchedLane, health: WebhookHealth, nowMs: number): Promise<void> {
    const { prefix, accountId, endedAt } = lane;
    const judgement = judgeHealth(health, nowMs);
    if (judgement === undefined) return;
    const verdict = { prefix, accountId, judgement, health };
    this.#last.set(prefix, verdict);
    const before = this.#underWay.get(prefix);
    if (before !== undefined) await before;
    if (this.#last.get(prefix) !== verdict) return;
    this.#last.delete(prefix);
    const isWarned = this.#warned.has(prefix) && this.#warned.get(prefix) === endedAt;
    if (judgement.kind === 'warn' && isWarned) return;
    const recording = this.#record(verdict, endedAt);
    this.#underWay.set(prefix, recording);
    await recording;
  }

  /** Records a verdict. If that fails, the webhook is judged again at its next failure. */
  async #record(verdict: HealthVerdict, endedAt: WatchedLane['endedAt']): Promise<void> {
    const { append, log } = this.#options;
    const { prefix, judgement, health } = verdict;
    const off = judgement.kind === 'switch off';
    const evidence = {
      prefix,
      failed_in_a_row: health.failedInARow,
      failing_since_ms: health.failingSinceMs,
    };
    if (off) this.#switchingOff.set(prefix, endedAt);
    let isRecorded = false;
    try {
      isRecorded = await append(verdict);
      if (!isRecorded) return;
      if (off) this.#last.delete(prefix);
      else this.#warned.set(prefix, endedAt);
      log.warn(evidence, off ? 'webhook switched off' : 'webhook keeps failing');
    } catch (error) {
      log.error({ err: error, ...evidence }, `could not record that the webhook ${off ? 'is off' : 'fails'}`);
    } finally {
      if (!isRecorded) this.#switchingOff.delete(prefix);
      this.#underWay.delete(prefix);
    }
  }
}
