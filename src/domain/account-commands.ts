import type { Account, ProfilePeriod } from './account.ts';
import type { AccountEvent } from './account-events.ts';
import { draftOf, evolveDraft } from './account-evolve.ts';
import {
  type Decision,
  type GivenReason,
  givenReason,
  type Refused,
  record,
  refused,
  unchanged,
} from './decision.ts';
import { decideOnKey, type KeyCommand } from './key-commands.ts';
import { textFault } from './values/bounds.ts';
import { dateTimeOrNull, formatDateTime } from './values/date-time.ts';
import { sameJson } from './values/same-json.ts';

interface ForAccount {
  readonly accountId: number;
}

interface Named {
  readonly name: string;
}

/** A change of some members; the others stay as they are. A new thing needs them, except its group and its end. */
type Change<T> = { readonly [Member in keyof T]?: T[Member] | undefined };

/**
 * A command that changes an account. Its values have been checked: ids are ids, allow-list entries are addresses or
 * CIDR ranges, and URLs may be called. Times are milliseconds since the epoch.
 */
export type AccountCommand =
  | (ForAccount & Named & { readonly type: 'OpenAccount' })
  | (ForAccount & Named & { readonly type: 'RenameAccount' })
  | (ForAccount & { readonly type: 'CloseAccount'; readonly reason: string })
  | (ForAccount & { readonly type: 'ReopenAccount'; readonly reason: string })
  | (ForAccount & { readonly type: 'SetContacts'; readonly emails: readonly string[] })
  | (ForAccount & { readonly type: 'EnableIntegration' })
  | (ForAccount & GivenReason & { readonly type: 'DisableIntegration' })
  | (ForAccount & Change<ProfilePeriod> & { readonly type: 'SetChargingProfile'; readonly profile: string })
  | (ForAccount & Change<Named> & { readonly type: 'SetCorporateGroup'; readonly groupId: number })
  | (ForAccount &
      Change<Named & { readonly groupId: number | null }> & {
        readonly type: 'SetCorporate';
        readonly corporateId: number;
      })
  | KeyCommand;

type AccountDecision = Decision<AccountEvent>;
type Command<Type extends AccountCommand['type']> = Extract<AccountCommand, { type: Type }>;

/**
 * Decides several commands in order, each on the account as the commands before it leave it. Returns their events and
 * the resulting account, or refuses all of them with every reason. `atMs` is when the events would be recorded.
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
 * Decides which events a command causes in the account's state. Pure. A command without an effect is `unchanged`; one
 * that is not possible is refused, with what to do instead.
 */
export function decide(command: AccountCommand, account: Account | undefined): AccountDecision {
  const fault = textsOf(command)
    .map(textFault)
    .find((found) => found !== undefined);
  if (fault !== undefined) return refused(`a text ${fault}`);
  if (command.type === 'OpenAccount') return openAccount(command, account);
  const id = command.accountId;
  if (account === undefined) {
    return refused(`account ${id} is not open. Run \`fuel account open ${id} --name …\``);
  }
  if (account.closed !== null && !isForClosed(command)) {
    return refused(isClosed(id, account.closed));
  }
  switch (command.type) {
    case 'RenameAccount':
      if (isBlank(command.name)) return refused('an account needs a name. Give one with --name');
      if (account.name === command.name) return unchanged;
      return record({ type: 'AccountRenamed', data: { account_id: id, name: command.name } });
    case 'CloseAccount':
      return closeAccount(command, account);
    case 'ReopenAccount':
      if (account.closed === null) return unchanged;
      return record({ type: 'AccountReopened', data: { account_id: id, reason: command.reason } });
    case 'SetContacts':
      if (sameJson(account.emails, command.emails)) return unchanged;
      return record({ type: 'AccountContactsSet', data: { account_id: id, emails: [...command.emails] } });
    case 'EnableIntegration':
      if (account.integration.enabled) return unchanged;
      return record({ type: 'IntegrationEnabled', data: { account_id: id } });
    case 'DisableIntegration':
      if (!account.integration.enabled) return unchanged;
      return record({ type: 'IntegrationDisabled', data: { account_id: id, ...givenReason(command) } });
    case 'SetChargingProfile':
      return setChargingProfile(command, account);
    case 'SetCorporateGroup':
      return setCorporateGroup(command, account);
    case 'SetCorporate':
      return setCorporate(command, account);
    default:
      return decideOnKey(command, account);
  }
}

function openAccount(command: Command<'OpenAccount'>, account: Account | undefined): AccountDecision {
  const { accountId, name } = command;
  if (isBlank(name)) return refused('an account needs a name. Give one with --name');
  if (account === undefined) return record({ type: 'AccountOpened', data: { account_id: accountId, name } });
  if (account.closed !== null) return refused(isClosed(accountId, account.closed));
  if (account.name === name) return unchanged;
  return refused(
    `account ${accountId} is open under the name ${account.name}. Run \`fuel account rename ${accountId} --name …\``,
  );
}

/** Closes the account. Its keys are switched off first, which ends their access and their pending deliveries. */
function closeAccount({ accountId, reason }: Command<'CloseAccount'>, account: Account): AccountDecision {
  if (account.closed !== null) return unchanged;
  const data = { account_id: accountId, reason };
  const keys = [...account.keys.values()].filter(({ active }) => active);
  const off: AccountEvent[] = account.integration.enabled ? [{ type: 'IntegrationDisabled', data }] : [];
  return record(
    ...off,
    ...keys.map(({ prefix }): AccountEvent => ({ type: 'KeySwitchedOff', data: { ...data, prefix } })),
    { type: 'AccountClosed', data },
  );
}

/**
 * True for a command that a closed account accepts. Its secrets are re-encrypted too, so that old master keys can go.
 */
function isForClosed({ type }: AccountCommand): boolean {
  return type === 'CloseAccount' || type === 'ReopenAccount' || type === 'RewrapWebhookSecret';
}

function isClosed(id: number, { reason }: NonNullable<Account['closed']>): string {
  return `account ${id} is closed (${reason}). Run \`fuel account reopen ${id} --reason …\` first`;
}

function setChargingProfile(command: Command<'SetChargingProfile'>, account: Account): AccountDecision {
  const { accountId, profile } = command;
  if (isBlank(profile)) return refused('a charging profile needs a name. Give one with --profile');
  const before = account.profiles.get(profile);
  const { fromMs = before?.fromMs, toMs = before?.toMs ?? null } = command;
  if (fromMs === undefined) return refused(`profile ${profile} is new and needs a from`);
  if (toMs !== null && toMs <= fromMs) {
    return refused('the end of a charging profile must be after its start. Give a later --to');
  }
  if (before !== undefined && before.fromMs === fromMs && before.toMs === toMs) return unchanged;
  const to = dateTimeOrNull(toMs);
  const data = { account_id: accountId, profile, from: formatDateTime(fromMs), to };
  return record({ type: 'ChargingProfileSet', data });
}

function setCorporateGroup(command: Command<'SetCorporateGroup'>, account: Account): AccountDecision {
  const { accountId, groupId } = command;
  const before = account.groups.get(groupId);
  const { name = before?.name } = command;
  if (name === undefined) return refused(`group ${groupId} is new and needs a name`);
  if (isBlank(name)) return refused('a corporate group needs a name. Give one with --name');
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
  if (isBlank(name)) return refused('a corporate needs a name. Give one with --name');
  if (groupId !== null && !account.groups.has(groupId)) {
    return refused(
      `account ${accountId} has no corporate group ${groupId}. ` +
        `Run \`fuel account group ${accountId} ${groupId} --name …\` first`,
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

/** The texts of a command whose length is checked. A webhook URL has a rule of its own. */
function textsOf(command: AccountCommand): readonly string[] {
  if (command.type === 'SetWebhookUrl') return [];
  return Object.values(command)
    .flat()
    .filter((value) => typeof value === 'string');
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}
