import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { readAccountEvent } from '../../accounts/read-account-event.ts';
import type { Clock } from '../../base/clock.ts';
import { dateTimeOrNull } from '../../domain/values/date-time.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { timeForAges } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import type { WebhookHealth } from '../queue/delivery.ts';
import { type HealthJudgement, judgeHealth } from './health.ts';

export interface HealthVerdict {
  readonly prefix: string;
  readonly accountId: number;
  readonly judgement: HealthJudgement;
  /** The failure streak, as evidence. */
  readonly health: WebhookHealth;
}

/** Resolves with false, with nothing recorded, if only a clock that is far ahead makes the streak that long, or if the webhook is off already. */
export type AppendHealthEvent = (verdict: HealthVerdict) => Promise<boolean>;

const AUTHOR = { actor: 'system', command: 'dispatcher' };

/**
 * Records a warning (once for each failure streak) or the switch-off on the account's stream, with the streak as
 * evidence. Does nothing if that is recorded already. Rejects with `REFUSED` if the webhook was removed, and as the
 * store does.
 */
export function createHealthEvents(store: EventStore, clock: Clock): AppendHealthEvent {
  const writer: AccountWriter = { store, clock, author: AUTHOR };
  return async (verdict) => {
    const { prefix, accountId, judgement, health: evidence } = verdict;
    if (judgeHealth(evidence, await timeForAges(store, clock))?.kind !== judgement.kind) return false;
    const of = { accountId, prefix, evidence };
    if (judgement.kind === 'switch off') {
      const command = { type: 'DisableWebhook', ...of, reason: judgement.reason } as const;
      return (await changeAccount(writer, accountId, [command])).events.length > 0;
    }
    const isDone = (recorded: readonly RecordedEvent[]): boolean => isWarned(recorded, verdict);
    await changeAccount({ ...writer, isDone }, accountId, [{ type: 'WarnWebhook', ...of }]);
    return true;
  };
}

/** True if a process has warned of this streak already. Its first failure identifies it. */
function isWarned(recorded: readonly RecordedEvent[], { prefix, health }: HealthVerdict): boolean {
  const since = dateTimeOrNull(health.failingSinceMs);
  return recorded.some((event) => {
    if (event.type !== 'WebhookFailing') return false;
    const read = readAccountEvent(event);
    if (!read.ok || read.event.type !== 'WebhookFailing') return false;
    return read.event.data.prefix === prefix && read.event.data.failing_since === since;
  });
}
