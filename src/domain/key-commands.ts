import type { Account, AccountKey } from './account.ts';
import type { AccountEvent, Environment } from './account-events.ts';
import { type Decision, type GivenReason, givenReason, record, refused, unchanged } from './decision.ts';
import { sameJson } from './values/same-json.ts';
import { decideWebhook, type ForKey, type WebhookCommand } from './webhook-commands.ts';

interface IssueKey extends ForKey {
  readonly type: 'IssueKey';
  readonly environment: Environment;
  readonly label: string | null;
  readonly secretSha256: string;
  readonly allowList: readonly string[];
  readonly rateLimit: number;
  readonly driverMobile: boolean;
}

/** A command that changes a key of an account. */
export type KeyCommand =
  | IssueKey
  | (ForKey & GivenReason & { readonly type: 'SwitchKeyOff' })
  | (ForKey & { readonly type: 'SwitchKeyOn' })
  | (ForKey & { readonly type: 'SetKeyAllowList'; readonly allowList: readonly string[] })
  | (ForKey & { readonly type: 'SetKeyRateLimit'; readonly rateLimit: number })
  | (ForKey & { readonly type: 'SetKeyDriverMobile'; readonly enabled: boolean })
  | WebhookCommand;

type KeyDecision = Decision<AccountEvent>;

/** Decides which events a command on a key causes. Pure; see `decide`. */
export function decideOnKey(command: KeyCommand, account: Account): KeyDecision {
  if (command.type === 'IssueKey') return issueKey(command, account);
  const { accountId, prefix } = command;
  const key = account.keys.get(prefix);
  if (key === undefined) {
    return refused(`account ${accountId} has no key ${prefix}. Run \`fuel key list --account ${accountId}\``);
  }
  return decideKey(command, account, key);
}

function issueKey(command: IssueKey, account: Account): KeyDecision {
  const { accountId, prefix, environment, label, allowList, rateLimit } = command;
  if (account.keys.has(prefix)) {
    return refused(`account ${accountId} has a key ${prefix} already. Issue one with another prefix`);
  }
  const fault = allowListFault(environment, allowList) ?? rateLimitFault(rateLimit);
  if (fault !== undefined) return refused(fault);
  return record({
    type: 'KeyIssued',
    data: {
      account_id: accountId,
      prefix,
      environment,
      label,
      secret_sha256: command.secretSha256,
      allow_list: [...allowList],
      rate_limit: rateLimit,
      driver_mobile: command.driverMobile,
    },
  });
}

function decideKey(command: Exclude<KeyCommand, IssueKey>, account: Account, key: AccountKey): KeyDecision {
  const ref = { account_id: command.accountId, prefix: key.prefix };
  switch (command.type) {
    case 'SwitchKeyOff':
      return key.active
        ? record({ type: 'KeySwitchedOff', data: { ...ref, ...givenReason(command) } })
        : unchanged;
    case 'SwitchKeyOn':
      return key.active ? unchanged : record({ type: 'KeySwitchedOn', data: ref });
    case 'SetKeyAllowList': {
      const fault = allowListFault(key.environment, command.allowList);
      if (fault !== undefined) return refused(fault);
      if (sameJson(key.allowList, command.allowList)) return unchanged;
      return record({ type: 'KeyAllowListSet', data: { ...ref, allow_list: [...command.allowList] } });
    }
    case 'SetKeyRateLimit': {
      const fault = rateLimitFault(command.rateLimit);
      if (fault !== undefined) return refused(fault);
      if (key.rateLimit === command.rateLimit) return unchanged;
      return record({ type: 'KeyRateLimitSet', data: { ...ref, rate_limit: command.rateLimit } });
    }
    case 'SetKeyDriverMobile':
      if (key.driverMobile === command.enabled) return unchanged;
      return record({ type: 'KeyDriverMobileSet', data: { ...ref, enabled: command.enabled } });
    default:
      return decideWebhook(command, account, key);
  }
}

function allowListFault(environment: Environment, allowList: readonly string[]): string | undefined {
  if (environment !== 'production' || allowList.length > 0) return undefined;
  return 'a production key needs an allow-list. Name at least one address or CIDR range';
}

function rateLimitFault(rateLimit: number): string | undefined {
  if (Number.isSafeInteger(rateLimit) && rateLimit >= 1) return undefined;
  return 'the rate limit must be a whole number of requests a minute, at least 1';
}
