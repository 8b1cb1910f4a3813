import type { AccountKey, AccountWebhook } from '../../domain/account.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { WebhookHealth } from '../../push/queue/delivery.ts';
import { type Column, link, state, time } from './columns.ts';

/** `reason` and `since` of a disabled one. */
export function webhookState(webhook: AccountWebhook | null) {
  const disabled = webhook?.disabled ?? null;
  const state = webhook === null ? 'none' : disabled === null ? 'active' : 'disabled';
  return {
    state,
    reason: disabled?.reason ?? null,
    since: disabled === null ? null : formatDateTime(disabled.sinceMs),
  } as const;
}

/** A key's webhook, whether it is on, and its failures in a row. */
export function webhookAnswer(accountId: number, { prefix, webhook }: AccountKey, health: WebhookHealth) {
  return {
    prefix,
    account: accountId,
    ...webhookState(webhook),
    url: webhook?.url ?? null,
    set_at: webhook === null ? null : formatDateTime(webhook.setAtMs),
    health: {
      failed_in_a_row: health.failedInARow,
      failing_since: health.failingSinceMs === null ? null : formatDateTime(health.failingSinceMs),
      last_answers: health.lastAnswers,
    },
  };
}

type WebhookAnswer = ReturnType<typeof webhookAnswer>;

export const WEBHOOK_FACTS: readonly Column<WebhookAnswer>[] = [
  { head: 'Key', cell: ({ prefix }) => link('key', prefix) },
  {
    head: 'State',
    cell: ({ state: name, since, reason }) =>
      since === null ? state(name) : [state(name), 'since', time(since), `(${reason})`],
  },
  { head: 'Account', cell: ({ account }) => link('account', account) },
  { head: 'URL', cell: ({ url }) => url ?? 'none' },
  { head: 'Set at', cell: ({ set_at }) => time(set_at) },
];

export const HEALTH_FACTS: readonly Column<WebhookAnswer>[] = [
  { head: 'Failed in a row', cell: ({ health }) => health.failed_in_a_row },
  { head: 'Failing since', cell: ({ health }) => time(health.failing_since) },
  { head: 'Last failures', cell: ({ health }) => health.last_answers.join(', ') || 'none' },
];
