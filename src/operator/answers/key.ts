import type { AccountKey } from '../../domain/account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import type { LastUse, RequestRow } from '../../pull/request-journal.ts';
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

/** Adds when and from where the key was used last. The newest use is known however old it is. */
export function usedKeyAnswer(key: KeyAnswer, last: LastUse | undefined): Used {
  const last_used_at = dateTimeOrNull(last?.atMs);
  return { ...key, last_used_at, last_used_from: last?.address ?? null };
}

/** A request with a key, or the refused ones of a minute: what was asked for, and the answer. */
export function requestAnswer({ atMs, count, address, status, code, rows, query }: RequestRow) {
  const { corporate_id = null, corporate_group_id = null } = query?.references ?? {};
  const after = query?.after;
  return {
    at: formatDateTime(atMs),
    /** More than 1 only for refused requests, whose newest one is described. */
    count,
    address,
    status,
    code,
    rows,
    from: dateTimeOrNull(query?.fromMs),
    to: dateTimeOrNull(query?.toMs),
    statuses: query?.statuses ?? null,
    corporate_group_id,
    corporate_id,
    /** How many ids there were, if they were too many to keep. */
    corporate_ids: query?.corporateIds ?? null,
    limit: query?.limit ?? null,
    /** The record after which the page continued; `null` for a first page. */
    after: after ? { id: after.id, created_at: formatDateTime(after.createdAtMs) } : null,
  };
}

/** A key as an external gateway needs it for checks 1 and 2. */
export function edgeKeyAnswer({ prefix, environment, allowList, rateLimit, active }: AccountKey) {
  return { prefix, environment, allow_list: allowList, rate_limit: rateLimit, active };
}
