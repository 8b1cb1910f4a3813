import type { AccountKey } from '../../domain/account.ts';

/** A key as an operator may see it: no hash, no secret. */
export function keyJson(accountId: number, key: AccountKey) {
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
  };
}

/** A key as an external gateway needs it for checks 1 and 2. */
export function edgeKeyJson(key: AccountKey) {
  return {
    prefix: key.prefix,
    environment: key.environment,
    allow_list: key.allowList,
    rate_limit: key.rateLimit,
    active: key.active,
  };
}
