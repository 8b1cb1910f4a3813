import type { AccountKey } from '../../domain/account.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { LastUse, RequestRow } from '../../pull/request-journal.ts';
import { type Cell, type Column, link, state, time } from './columns.ts';
import { some } from './names.ts';
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

type Used = KeyAnswer & { readonly last_used_at: string | null; readonly last_used_from: string | null };

/** With when it was used last, as it was given its answer: an old one is known, if it is the newest. */
export function usedKeyAnswer(key: KeyAnswer, last: LastUse | undefined): Used {
  const last_used_at = last === undefined ? null : formatDateTime(last.atMs);
  return { ...key, last_used_at, last_used_from: last?.address ?? null };
}

/** A request with a key: what it asked for, and what it got. */
export function requestAnswer({ atMs, address, status, code, rows, query }: RequestRow) {
  const timeOf = (ms: number | undefined): string | null => (ms === undefined ? null : formatDateTime(ms));
  const { corporate_id = null, corporate_group_id = null } = query?.references ?? {};
  const after = query?.after;
  return {
    at: formatDateTime(atMs),
    address,
    status,
    code,
    rows,
    from: timeOf(query?.fromMs),
    to: timeOf(query?.toMs),
    statuses: query?.statuses ?? null,
    ...{ corporate_group_id, corporate_id },
    limit: query?.limit ?? null,
    /** What the page continued after; `null` for a first page. */
    after: after ? { id: after.id, created_at: formatDateTime(after.createdAtMs) } : null,
  };
}

type RequestAnswer = ReturnType<typeof requestAnswer>;

export const REQUEST_COLUMNS: readonly Column<RequestAnswer>[] = [
  { head: 'Time', width: 24, cell: ({ at }) => time(at) },
  { head: 'From address', width: 15, cell: ({ address }) => address ?? '–' },
  { head: 'Answer', width: 6, number: true, cell: ({ status }) => status },
  { head: 'Records', width: 7, number: true, cell: ({ rows }) => rows ?? '–' },
  { head: 'From', width: 24, cell: ({ from }) => time(from) },
  { head: 'To', width: 24, cell: ({ to }) => time(to) },
  { head: 'More', cell: moreOf },
];

function moreOf({ code, corporate_id: ids, corporate_group_id: group, after }: RequestAnswer): Cell {
  return [
    code ?? '',
    group === null ? '' : `group ${group}`,
    ids === null ? '' : `corporates ${some(ids.map(String))}`,
    after === null ? '' : `after transaction ${after.id}`,
  ];
}

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

export const USED_KEY_COLUMNS: readonly Column<Used>[] = [
  ...KEY_COLUMNS.slice(0, -1),
  { head: 'Last used', width: 24, cell: ({ last_used_at }) => time(last_used_at) },
  { head: 'From', width: 15, cell: ({ last_used_from }) => last_used_from ?? '–' },
  ...KEY_COLUMNS.slice(-1),
];

function webhookCell({ prefix, webhook_url: url, ...of }: KeyAnswer): Cell {
  if (url === null) return 'none';
  const since = of.webhook_since === null ? [] : ['since', time(of.webhook_since), `(${of.webhook_reason})`];
  return [state(of.webhook_state), link('webhook', prefix), url, ...since];
}
