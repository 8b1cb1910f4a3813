import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import type { Controls } from './control-server.ts';
import type { MockData } from './mock-data.ts';
import type { MockOperator } from './mock-operator.ts';
import { KINDS, type WebhookKind } from './mock-webhooks.ts';
import { type SentWebhook, sendWebhook } from './send-mock.ts';

export interface ControlParts {
  readonly operator: MockOperator;
  readonly data: MockData;
  readonly presigner: Presigner;
  /** Ends the waits between attempts. */
  readonly signal: AbortSignal;
}

/** The changes that the control listener makes to the mock's service. */
export function createControls(parts: ControlParts): Controls {
  const { operator, data, presigner, signal } = parts;
  const { account, prefix, webhookSecret: secret } = data;
  /** The transactions to send next: the oldest first, and all of them again after the last. */
  let queue: readonly number[] = data.shownIds;
  const nextIds = (count: number): number[] => {
    const ids = queue.slice(0, count);
    queue = [...queue.slice(count), ...ids];
    return ids;
  };
  return {
    async send({ kind, url, transaction }) {
      const { transactions: count, plan, retryDelaysMs = [] }: WebhookKind = KINDS[kind];
      if (transaction !== undefined && count !== 1)
        throw new FuelError('USAGE', `transaction: ${kind} takes none`);
      const ids = transaction === undefined ? nextIds(count) : [transaction];
      const rows = await Promise.all(ids.map((id) => operator.shown(id)));
      const sent: SentWebhook[] = [];
      for (const waitMs of [0, ...retryDelaysMs]) {
        await sleep(waitMs, undefined, { signal });
        for (const webhook of plan(rows, { url, prefix, secret, presigner, nowMs: systemClock.now() }))
          sent.push(await sendWebhook(webhook));
        if (sent.at(-1)?.as_expected) break;
      }
      return sent;
    },
    async void(transaction_id) {
      await operator.shown(transaction_id);
      const voided_at = formatDateTime(systemClock.now());
      const voided = { transaction_id, account_id: account.id, voided_at, reason: 'asked for' };
      await operator.record([{ type: 'TransactionVoided', data: voided }]);
      queue = queue.filter((id) => id !== transaction_id);
    },
  };
}
