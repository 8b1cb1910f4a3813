import { array, enums, type Infer, nullable, object, optional } from 'superstruct';
import type { Account } from '../../domain/account.ts';
import { type AccountCommand, decideAll } from '../../domain/account-commands.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import { type Decision, type GivenReason, refused, unchanged } from '../../domain/decision.ts';
import { faultsOf } from '../../domain/events.ts';
import { parseDateTime } from '../../domain/values/date-time.ts';
import { dateTime, email, id, name } from '../../domain/values/primitives.ts';

/**
 * The maximum of events for one desired account. They are recorded together, and EventStoreDB takes 1 MiB in an append.
 */
export const MAX_DESIRED_EVENTS = 1_000;

const desiredAccount = object({
  account_id: id,
  name: optional(name),
  integration: optional(enums(['on', 'off'])),
  contacts: optional(array(email)),
  profiles: optional(
    array(object({ profile: name, from: optional(dateTime), to: optional(nullable(dateTime)) })),
  ),
  groups: optional(array(object({ id, name: optional(name) }))),
  corporates: optional(array(object({ id, name: optional(name), group_id: optional(nullable(id)) }))),
});

/**
 * An account as it should be. Anything that is left out stays as it is: a member, a profile, a group, a corporate, or a
 * member of one of these. A list of contacts replaces the previous one.
 */
export type DesiredAccount = Infer<typeof desiredAccount>;

/** Returns every fault of the members; none if they are a `DesiredAccount`. */
export function faultsOfDesired(members: unknown): string[] {
  const faults = faultsOf(desiredAccount, members);
  return faults.length > 0 ? faults : repeatedIn(members as DesiredAccount);
}

/** Returns a fault for everything that is listed twice, since the second would undo the first each time. */
function repeatedIn({ profiles = [], groups = [], corporates = [] }: DesiredAccount): string[] {
  const lists: Readonly<Record<string, readonly (string | number)[]>> = {
    profiles: profiles.map(({ profile }) => profile),
    groups: groups.map((group) => group.id),
    corporates: corporates.map((corporate) => corporate.id),
  };
  return Object.entries(lists).flatMap(([list, names]) => {
    const seen = new Set<string | number>();
    const again = new Set(names.filter((name) => seen.size === seen.add(name).size));
    return [...again].map((name) => `${list}: ${name} is there twice`);
  });
}

/** The decision on a desired account: the events that make it so and the resulting account, no change, or a refusal. */
export type DesiredDecision = Exclude<Decision<AccountEvent>, { kind: 'events' }> | DecidedAccount;
interface DecidedAccount {
  readonly kind: 'events';
  readonly events: readonly AccountEvent[];
  readonly account: Account;
}

/**
 * Decides the events that make the account what it should be, like the single commands. Pure. If a part is not
 * possible, all of it is refused with every reason. `reason` is why the integration is switched off, if it is; `atMs`
 * is when the events would be recorded.
 */
export function decideDesired(
  desired: DesiredAccount & GivenReason,
  before: Account | undefined,
  atMs: number,
): DesiredDecision {
  if (before === undefined && desired.name === undefined) {
    return refused(`account ${desired.account_id} is not open. Give it a name to open it`);
  }
  const decision = decideAll(commandsFor(desired, before !== undefined), before, atMs);
  if (decision.kind === 'refused') return decision;
  const { events, account } = decision;
  if (events.length > MAX_DESIRED_EVENTS) {
    return refused(
      `it needs ${events.length} events and one line records at most ${MAX_DESIRED_EVENTS}: ` +
        'give the account in several lines',
    );
  }
  return events.length === 0 ? unchanged : { kind: 'events', events, account };
}

/** Yields the commands in an order in which each can follow those before it: groups precede their corporates. */
function* commandsFor(desired: DesiredAccount & GivenReason, isOpen: boolean): Generator<AccountCommand> {
  const { account_id: accountId, name: accountName, integration, contacts, reason } = desired;
  if (accountName !== undefined)
    yield { type: isOpen ? 'RenameAccount' : 'OpenAccount', accountId, name: accountName };
  if (integration === 'on') yield { type: 'EnableIntegration', accountId };
  if (integration === 'off') yield { type: 'DisableIntegration', accountId, reason };
  if (contacts !== undefined) yield { type: 'SetContacts', accountId, emails: contacts };
  for (const { profile, from, to } of desired.profiles ?? []) {
    const fromMs = from === undefined ? undefined : parseDateTime(from);
    const toMs = to === undefined || to === null ? to : parseDateTime(to);
    yield { type: 'SetChargingProfile', accountId, profile, fromMs, toMs };
  }
  for (const { id: groupId, name: groupName } of desired.groups ?? [])
    yield { type: 'SetCorporateGroup', accountId, groupId, name: groupName };
  for (const { id: corporateId, name: corporateName, group_id: groupId } of desired.corporates ?? [])
    yield { type: 'SetCorporate', accountId, corporateId, name: corporateName, groupId };
}
