import { type Account, type AccountKey, profileAccess } from './account.ts';
import type { AccountEvent } from './account-events.ts';
import { parseDateTime } from './values/date-time.ts';

/** An event that cannot follow those before it, such as one about a key that was never issued. */
export class EventOrderFault extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'EventOrderFault';
  }
}

/**
 * An account that its owner may change in place. A change costs the same however many corporates the account has;
 * copying the maps for each event would make a long stream quadratic. The entries of the maps never change; they are
 * replaced.
 */
export type AccountDraft = {
  -readonly [Field in keyof Account]: Account[Field] extends ReadonlyMap<infer K, infer V>
    ? Map<K, V>
    : Account[Field];
};

type KeyEvent = Exclude<Extract<AccountEvent, { data: { prefix: string } }>, { type: 'KeyIssued' }>;

/**
 * Returns the account after one more event of the stream of account `id`, or why that event can't follow; the draft is
 * then unchanged.
 */
export function nextDraft(
  draft: AccountDraft | undefined,
  { event, atMs }: { readonly event: AccountEvent; readonly atMs: number },
  id: number,
): AccountDraft | { readonly fault: string } {
  if (event.data.account_id !== id) return { fault: `it is about account ${event.data.account_id}` };
  try {
    return evolveDraft(draft, event, atMs);
  } catch (error) {
    if (error instanceof EventOrderFault) return { fault: error.message };
    throw error;
  }
}

/** Changes the draft by one more event and returns it. The draft is unchanged if this throws. */
export function evolveDraft(
  draft: AccountDraft | undefined,
  event: AccountEvent,
  atMs: number,
): AccountDraft {
  if (event.type === 'AccountOpened') return open(draft, event, atMs);
  if (draft === undefined) throw new EventOrderFault(`${event.type} before the account was opened`);
  if (event.data.account_id !== draft.id) {
    throw new EventOrderFault(`${event.type} of account ${event.data.account_id} on account ${draft.id}`);
  }
  change(draft, event, atMs);
  return draft;
}

function open(
  draft: AccountDraft | undefined,
  event: Extract<AccountEvent, { type: 'AccountOpened' }>,
  atMs: number,
) {
  if (draft !== undefined) throw new EventOrderFault(`account ${draft.id} was opened before`);
  return {
    id: event.data.account_id,
    name: event.data.name,
    closed: null,
    emails: [],
    integration: { enabled: false, sinceMs: atMs },
    profiles: new Map(),
    profileChangedAtMs: null,
    groups: new Map(),
    corporates: new Map(),
    keys: new Map(),
  } satisfies AccountDraft;
}

function change(
  draft: AccountDraft,
  event: Exclude<AccountEvent, { type: 'AccountOpened' }>,
  atMs: number,
): void {
  switch (event.type) {
    case 'EventSkipped':
      return;
    case 'AccountRenamed':
      draft.name = event.data.name;
      return;
    case 'AccountClosed':
      draft.closed = { reason: event.data.reason, sinceMs: atMs };
      return;
    case 'AccountReopened':
      draft.closed = null;
      return;
    case 'AccountContactsSet':
      draft.emails = event.data.emails;
      return;
    case 'IntegrationEnabled':
    case 'IntegrationDisabled':
      draft.integration = { enabled: event.type === 'IntegrationEnabled', sinceMs: atMs };
      return;
    case 'ChargingProfileSet': {
      const { profile, from, to } = event.data;
      const period = { fromMs: instant(from), toMs: to === null ? null : instant(to) };
      const wasActive = profileAccess(draft, atMs).active;
      draft.profiles.set(profile, period);
      if (wasActive !== profileAccess(draft, atMs).active) draft.profileChangedAtMs = atMs;
      return;
    }
    case 'CorporateGroupAdded':
      assertNew(event, draft.groups.has(event.data.corporate_group_id));
      draft.groups.set(event.data.corporate_group_id, { name: event.data.name });
      return;
    case 'CorporateGroupRenamed':
      assertGroup(draft, event, event.data.corporate_group_id);
      draft.groups.set(event.data.corporate_group_id, { name: event.data.name });
      return;
    case 'CorporateAdded':
    case 'CorporateRenamed':
    case 'CorporateMoved':
      changeCorporate(draft, event);
      return;
    case 'KeyIssued':
      assertNew(event, draft.keys.has(event.data.prefix));
      draft.keys.set(event.data.prefix, issuedKey(event));
      return;
    default:
      changeKey(draft, event, atMs);
  }
}

function changeCorporate(
  draft: AccountDraft,
  event: Extract<AccountEvent, { data: { corporate_id: number } }>,
): void {
  const corporateId = event.data.corporate_id;
  const before = draft.corporates.get(corporateId);
  if (event.type === 'CorporateAdded') {
    assertNew(event, before !== undefined);
    assertGroup(draft, event, event.data.corporate_group_id);
    draft.corporates.set(corporateId, { name: event.data.name, groupId: event.data.corporate_group_id });
    return;
  }
  if (before === undefined) {
    throw new EventOrderFault(`${event.type} names corporate ${corporateId}, which was never added`);
  }
  if (event.type === 'CorporateRenamed') {
    draft.corporates.set(corporateId, { ...before, name: event.data.name });
    return;
  }
  assertGroup(draft, event, event.data.corporate_group_id);
  draft.corporates.set(corporateId, { ...before, groupId: event.data.corporate_group_id });
}

/** The key as it is when it has just been issued. */
export function issuedKey({ data }: Extract<AccountEvent, { type: 'KeyIssued' }>): AccountKey {
  return {
    prefix: data.prefix,
    environment: data.environment,
    label: data.label,
    secretSha256: data.secret_sha256,
    active: true,
    allowList: data.allow_list,
    rateLimit: data.rate_limit,
    driverMobile: data.driver_mobile,
    webhook: null,
    webhookSecret: null,
  };
}

function changeKey(draft: AccountDraft, event: KeyEvent, atMs: number): void {
  const key = draft.keys.get(event.data.prefix);
  if (key === undefined) {
    throw new EventOrderFault(`${event.type} names key ${event.data.prefix}, which was never issued`);
  }
  draft.keys.set(key.prefix, evolveKey(key, event, atMs));
}

function evolveKey(key: AccountKey, event: KeyEvent, atMs: number): AccountKey {
  switch (event.type) {
    case 'KeySwitchedOff':
    case 'KeySwitchedOn':
      return { ...key, active: event.type === 'KeySwitchedOn' };
    case 'KeyAllowListSet':
      return { ...key, allowList: event.data.allow_list };
    case 'KeyRateLimitSet':
      return { ...key, rateLimit: event.data.rate_limit };
    case 'KeyDriverMobileSet':
      return { ...key, driverMobile: event.data.enabled };
    case 'WebhookUrlSet':
      return setWebhook(key, event);
    case 'WebhookSecretRewrapped':
      if (key.webhookSecret === null) {
        throw new EventOrderFault(`${event.type} names key ${key.prefix}, which has no webhook secret`);
      }
      return { ...key, webhookSecret: event.data.secret };
    case 'WebhookRemoved':
      return { ...key, webhook: null };
    // Failures are counted concurrently with the operator's commands, so the webhook may just have been removed.
    case 'WebhookDisabled': {
      const disabled = { reason: event.data.reason, sinceMs: atMs };
      return key.webhook === null ? key : { ...key, webhook: { ...key.webhook, disabled } };
    }
    case 'WebhookEnabled':
      return key.webhook === null ? key : { ...key, webhook: { ...key.webhook, disabled: null } };
    case 'WebhookRateSet': {
      const ratePerSecond = event.data.per_second;
      return key.webhook === null ? key : { ...key, webhook: { ...key.webhook, ratePerSecond } };
    }
    case 'WebhookTestRequested':
    case 'WebhookFailing':
    case 'RedeliveryRequested':
    case 'RedeliveryCancelled':
      return key;
    default:
      return event satisfies never;
  }
}

function setWebhook(key: AccountKey, { data }: Extract<KeyEvent, { type: 'WebhookUrlSet' }>): AccountKey {
  const webhookSecret = data.secret ?? key.webhookSecret;
  if (webhookSecret === null) {
    throw new EventOrderFault(`WebhookUrlSet brings no secret, and key ${key.prefix} has none`);
  }
  // A new address neither enables the webhook again nor raises its rate.
  const { disabled = null, ratePerSecond = null } = key.webhook ?? {};
  const webhook = { url: data.url, setAtMs: instant(data.set_at), disabled, ratePerSecond };
  return { ...key, webhook, webhookSecret };
}

function assertNew(event: AccountEvent, isThere: boolean): void {
  if (isThere) throw new EventOrderFault(`${event.type} repeats what is there already`);
}

function assertGroup(draft: AccountDraft, event: AccountEvent, groupId: number | null): void {
  if (groupId !== null && !draft.groups.has(groupId)) {
    throw new EventOrderFault(`${event.type} names corporate group ${groupId}, which was never added`);
  }
}

function instant(text: string): number {
  const ms = parseDateTime(text);
  if (ms === undefined) throw new EventOrderFault(`${text} is not a date-time`);
  return ms;
}

/** Makes a draft from an account, which stays as it is. */
export function draftOf(account: Account): AccountDraft {
  return {
    ...account,
    profiles: new Map(account.profiles),
    groups: new Map(account.groups),
    corporates: new Map(account.corporates),
    keys: new Map(account.keys),
  };
}
