import type { AccountKey } from '../../domain/account.ts';
import { type Cell, type Column, link, state, time } from './columns.ts';
import { webhookState } from './webhook.ts';

/** A key as an operator may see it: no hash, no secret. */
export function keyAnswer(accountId: number, key: AccountKey) {
  const webhook = webhookState(key.webhook);
  return {
    account: accountId,
    prefix: key.prefix,
    environment: key.environment,
    label: key.label,
    active: key.active,
    allow_list: key.allowList,
    rate_limit: key.rateLimit,
    driver_mobile: key.driverMobile,
    webhook_url: key.webhook?.url ?? null,
    webhook_state: webhook.state,
    webhook_reason: webhook.reason,
    webhook_since: webhook.since,
  };
}

export type KeyAnswer = ReturnType<typeof keyAnswer>;

/** A key as an external gateway needs it for checks 1 and 2. */
export function edgeKeyAnswer({ prefix, environment, allowList, rateLimit, active }: AccountKey) {
  return { prefix, environment, allow_list: allowList, rate_limit: rateLimit, active };
}

const MAX_ADDRESSES = 100;

export const KEY_COLUMNS: readonly Column<KeyAnswer>[] = [
  { head: 'Key', width: 10, cell: ({ prefix }) => link('key', prefix) },
  { head: 'Account', width: 8, cell: ({ account }) => link('account', account) },
  { head: 'Label', width: 16, cell: ({ label }) => label ?? '–' },
  { head: 'State', width: 5, cell: ({ active }) => state(active ? 'on' : 'off') },
  { head: 'Environment', width: 11, cell: ({ environment }) => environment },
  {
    head: 'Addresses',
    width: 18,
    cell: ({ allow_list: list }) => list.slice(0, MAX_ADDRESSES).join(',') || 'any address',
  },
  { head: 'In 60 s', width: 7, number: true, cell: ({ rate_limit }) => rate_limit },
  { head: 'Mobile numbers', width: 14, cell: ({ driver_mobile }) => (driver_mobile ? 'sent' : 'left out') },
  { head: 'Webhook', cell: webhookCell },
];

function webhookCell({ prefix, webhook_url: url, ...of }: KeyAnswer): Cell {
  if (url === null) return 'none';
  const since = of.webhook_since === null ? [] : ['since', time(of.webhook_since), `(${of.webhook_reason})`];
  return [state(of.webhook_state), link('webhook', prefix), url, ...since];
}
