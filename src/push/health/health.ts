import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import type { WebhookHealth } from '../queue/delivery.ts';

const WARN = { failedInARow: 25, failingForMs: DAY_MS };
const SWITCH_OFF = { failedInARow: 50, failingForMs: 3 * DAY_MS };

export type HealthJudgement =
  | { readonly kind: 'warn' }
  | { readonly kind: 'switch off'; readonly reason: string };

/**
 * Judges a webhook's failure streak when a delivery has failed: a warning at 25 failures in a row or after a day, the
 * switch-off at 50 in a row or after three days, whichever comes first.
 */
export function judgeHealth(health: WebhookHealth, nowMs: number): HealthJudgement | undefined {
  const { failedInARow, failingSinceMs } = health;
  if (failedInARow >= SWITCH_OFF.failedInARow) {
    return { kind: 'switch off', reason: `${failedInARow} deliveries failed in a row` };
  }
  const failingForMs = failingSinceMs === null ? 0 : nowMs - failingSinceMs;
  if (failingSinceMs !== null && failingForMs >= SWITCH_OFF.failingForMs) {
    return { kind: 'switch off', reason: `every delivery failed since ${formatDateTime(failingSinceMs)}` };
  }
  const warn = failedInARow >= WARN.failedInARow || failingForMs >= WARN.failingForMs;
  return warn ? { kind: 'warn' } : undefined;
}
