import type { Account, AccountKey, ProfilePeriod } from './account.ts';
import type { AccountEvent, Environment } from './account-events.ts';
import { draftOf, evolveDraft } from './account-evolve.ts';
import { type Decision, type Refused, record, refused, unchanged } from './decision.ts';
import { type GivenReason, reasonOf } from './given-reason.ts';
import { textFault } from './values/bounds.ts';
import { formatDateTime } from './values/date-time.ts';
import { decideWebhook, type WebhookCommand } from './webhook-commands.ts';

interface ForAccount {
  readonly accountId: number;
}

interface ForKey extends ForAccount {
  readonly prefix: string;
}

interface Named {
  readonly name: string;
}

/** What is left out stays as it is; a new thing needs it, but may be in no group and without an end. */
type AsItIs<T> = { readonly [Member in keyof T]?: T[Member] | undefined };

/**
 * What can be done to an account. Values were checked before: ids are ids, allow-list entries are addresses or CIDR
 * ranges, URLs may be called. Times are milliseconds since the epoch.
 */
export type AccountCommand =
  | (ForAccount & { readonly type: 'OpenAccount'; readonly name: string })
  | (ForAccount & { readonly type: 'SetContacts'; readonly emails: readonly string[] })
  | (ForAccount & { readonly type: 'EnableIntegration' })
  | (ForAccount & GivenReason & { readonly type: 'DisableIntegration' })
  | (ForAccount & AsItIs<ProfilePeriod> & { readonly type: 'SetChargingProfile'; readonly profile: string })
  | (ForAccount & AsItIs<Named> & { readonly type: 'SetCorporateGroup'; readonly groupId: number })
  | (ForAccount &
      AsItIs<Named & { readonly groupId: number | null }> & {
        readonly type: 'SetCorporate';
        readonly corporateId: number;
      })
  | (ForKey & {
      readonly type: 'IssueKey';
      readonly environment: Environment;
      readonly label: string | null;
      readonly secretSha256: string;
      readonly allowList: readonly string[];
      readonly rateLimit: number;
      readonly driverMobile: boolean;
    })
  | KeyCommand
  | WebhookCommand;

type KeyCommand =
  | (ForKey & GivenReason & { readonly type: 'SwitchKeyOff' })
  | (ForKey & { readonly type: 'SwitchKeyOn' })
  | (ForKey & { readonly type: 'SetKeyAllowList'; readonly allowList: readonly string[] })
  | (ForKey & { readonly type: 'SetKeyRateLimit'; readonly rateLimit: number })
  | (ForKey & { readonly type: 'SetKeyDriverMobile'; readonly enabled: boolean });

type AccountDecision = Decision<AccountEvent>;
type Command<Type extends AccountCommand['type']> = Extract<AccountCommand, { type: Type }>;

/**
 * The events of several commands, each decided on what those before it make of the account, and that account. Refused
 * as a whole, with every reason. `atMs`: when they would be recorded.
 */
export function decideAll(
  commands: Iterable<AccountCommand>,
  before: Account | undefined,
  atMs: number,
):
  | { readonly kind: 'decided'; readonly events: readonly AccountEvent[]; readonly account: Account }
  | Refused {
  const events: AccountEvent[] = [];
  const reasons = new Set<string>();
  let account = before && draftOf(before);
  for (const command of commands) {
    const decision = decide(command, account);
    if (decision.kind === 'refused') reasons.add(decision.reason);
    if (decision.kind !== 'events') continue;
    for (const event of decision.events) {
      account = evolveDraft(account, event, atMs);
      events.push(event);
    }
  }
  if (reasons.size > 0) return refused([...reasons].join('; '));
  if (account === undefined) throw new Error('commands on an account that is not open were not refused');
  return { kind: 'decided', events, account };
}

/**
 * The events that a command causes in the account's state. Pure. A command that was carried out before is `unchanged`,
 * one that is not possible is refused with what to do instead.
 */
export function decide(command: AccountCommand, account: Account | undefined): AccountDecision {
  const fault = textsOf(command)
    .map(textFault)
    .find((found) => found !== undefined);
  if (fault !== undefined) return refused(`a text ${fault}`);
  if (command.type === 'OpenAccount') return openAccount(command, account);
  const id = command.accountId;
  if (account === undefined) {
    return refused(`account ${id} is not open: run fuel account open ${id} --name …`);
  }
  switch (command.type) {
    case 'SetContacts':
      if (sameList(account.emails, command.emails)) return unchanged;
      return record({ type: 'AccountContactsSet', data: { account_id: id, emails: [...command.emails] } });
    case 'EnableIntegration':
      if (account.integrationEnabled) return unchanged;
      return record({ type: 'IntegrationEnabled', data: { account_id: id } });
    case 'DisableIntegration':
      if (!account.integrationEnabled) return unchanged;
      return record({ type: 'IntegrationDisabled', data: { account_id: id, ...reasonOf(command) } });
    case 'SetChargingProfile':
      return setChargingProfile(command, account);
    case 'SetCorporateGroup':
      return setCorporateGroup(command, account);
    case 'SetCorporate':
      return setCorporate(command, account);
    case 'IssueKey':
      return issueKey(command, account);
    default:
      return decideOnKey(command, account);
  }
}

function openAccount(command: Command<'OpenAccount'>, account: Account | undefined): AccountDecision {
  const { accountId, name } = command;
  if (isBlank(name)) return refused('an account needs a name: give one with --name');
  if (account === undefined) return record({ type: 'AccountOpened', data: { account_id: accountId, name } });
  if (account.name === name) return unchanged;
  return refused(
    `account ${accountId} is open under the name ${account.name}, which stays: open another id instead`,
  );
}

function setChargingProfile(command: Command<'SetChargingProfile'>, account: Account): AccountDecision {
  const { accountId, profile } = command;
  if (isBlank(profile)) return refused('a charging profile needs a name: give one with --profile');
  const before = account.profiles.get(profile);
  const { fromMs = before?.fromMs, toMs = before?.toMs ?? null } = command;
  if (fromMs === undefined) return refused(`profile ${profile} is new and needs a from`);
  if (toMs !== null && toMs <= fromMs) {
    return refused('the end of a charging profile must be after its start: give a later --to');
  }
  if (before !== undefined && before.fromMs === fromMs && before.toMs === toMs) return unchanged;
  const to = toMs === null ? null : formatDateTime(toMs);
  const data = { account_id: accountId, profile, from: formatDateTime(fromMs), to };
  return record({ type: 'ChargingProfileSet', data });
}

function setCorporateGroup(command: Command<'SetCorporateGroup'>, account: Account): AccountDecision {
  const { accountId, groupId } = command;
  const before = account.groups.get(groupId);
  const { name = before?.name } = command;
  if (name === undefined) return refused(`group ${groupId} is new and needs a name`);
  if (isBlank(name)) return refused('a corporate group needs a name: give one with --name');
  if (before?.name === name) return unchanged;
  const data = { account_id: accountId, corporate_group_id: groupId, name };
  return record({ type: before === undefined ? 'CorporateGroupAdded' : 'CorporateGroupRenamed', data });
}

function setCorporate(command: Command<'SetCorporate'>, account: Account): AccountDecision {
  const { accountId, corporateId } = command;
  const before = account.corporates.get(corporateId);
  const { name = before?.name, groupId = before?.groupId ?? null } = command;
  if (name === undefined) {
    return refused(`corporate ${corporateId} is new and needs a name`);
  }
  if (isBlank(name)) return refused('a corporate needs a name: give one with --name');
  if (groupId !== null && !account.groups.has(groupId)) {
    return refused(
      `account ${accountId} has no corporate group ${groupId}: ` +
        `run fuel account group ${accountId} ${groupId} --name … first`,
    );
  }
  const corporate = { account_id: accountId, corporate_id: corporateId };
  const moved = { ...corporate, corporate_group_id: groupId };
  if (before === undefined) return record({ type: 'CorporateAdded', data: { ...moved, name } });
  const events: AccountEvent[] = [];
  if (name !== before.name) events.push({ type: 'CorporateRenamed', data: { ...corporate, name } });
  if (groupId !== before.groupId) events.push({ type: 'CorporateMoved', data: moved });
  return events.length === 0 ? unchanged : record(...events);
}

function issueKey(command: Command<'IssueKey'>, account: Account): AccountDecision {
  const { accountId, prefix, environment, label, allowList, rateLimit } = command;
  if (account.keys.has(prefix)) {
    return refused(`account ${accountId} has a key ${prefix} already: issue one with another prefix`);
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

function decideOnKey(command: KeyCommand | WebhookCommand, account: Account): AccountDecision {
  const { accountId, prefix } = command;
  const key = account.keys.get(prefix);
  if (key === undefined) {
    return refused(
      `account ${accountId} has no key ${prefix}: run fuel key list --account ${accountId} to see its keys`,
    );
  }
  return decideKey(command, account, key);
}

function decideKey(command: KeyCommand | WebhookCommand, account: Account, key: AccountKey): AccountDecision {
  const ref = { account_id: command.accountId, prefix: key.prefix };
  switch (command.type) {
    case 'SwitchKeyOff':
      return key.active
        ? record({ type: 'KeySwitchedOff', data: { ...ref, ...reasonOf(command) } })
        : unchanged;
    case 'SwitchKeyOn':
      return key.active ? unchanged : record({ type: 'KeySwitchedOn', data: ref });
    case 'SetKeyAllowList': {
      const fault = allowListFault(key.environment, command.allowList);
      if (fault !== undefined) return refused(fault);
      if (sameList(key.allowList, command.allowList)) return unchanged;
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
  return 'a production key needs an allow-list: name at least one address or CIDR range';
}

function rateLimitFault(rateLimit: number): string | undefined {
  if (Number.isSafeInteger(rateLimit) && rateLimit >= 1) return undefined;
  return 'the rate limit must be a whole number of requests a minute, at least 1';
}

/** Of an address its own rule says how long it may be. */
function textsOf(command: AccountCommand): readonly string[] {
  if (command.type === 'SetWebhookUrl') return [];
  return Object.values(command)
    .flat()
    .filter((value) => typeof value === 'string');
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
