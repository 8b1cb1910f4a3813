import { array, boolean, enums, type Infer, nullable, optional, string, type } from 'superstruct';
import { dateTime, id, integer, perSecond, text } from './values/primitives.ts';

const ENVIRONMENTS = ['production', 'staging'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The states of deliveries that can be redelivered. */
export const REDELIVERABLE = ['failed', 'delivered'] as const;
export type Redeliverable = (typeof REDELIVERABLE)[number];

const account = { account_id: id };
const key = { ...account, prefix: text };
const corporateGroup = { ...account, corporate_group_id: id };
const corporate = { ...account, corporate_id: id };
/** The operator's reason for switching something off, if one was given. */
const givenReason = { reason: optional(nullable(text)) };

/** A text encrypted with AES-256-GCM and bound to the key's prefix. The parts are in base64. */
const ciphertext = type({ master_key_id: string(), nonce: string(), ciphertext: string(), tag: string() });

/** The evidence for a warning about a webhook or for its switch-off: its failure streak and the last answers. */
const failureEvidence = {
  failed_in_a_row: integer,
  failing_since: nullable(dateTime),
  last_answers: array(string()),
};

export const accountEvents = {
  AccountOpened: type({ ...account, name: string() }),
  AccountRenamed: type({ ...account, name: string() }),
  /** Recorded together with, and after, `IntegrationDisabled` and a `KeySwitchedOff` for each key, if they were on. */
  AccountClosed: type({ ...account, reason: text }),
  /** Reopening does not switch anything on again. */
  AccountReopened: type({ ...account, reason: text }),
  AccountContactsSet: type({ ...account, emails: array(string()) }),
  IntegrationEnabled: type(account),
  IntegrationDisabled: type({ ...account, ...givenReason }),
  /** Setting a profile again replaces its period, to renew or shorten it. If `to` is null, it is open-ended. */
  ChargingProfileSet: type({ ...account, profile: string(), from: dateTime, to: nullable(dateTime) }),
  CorporateGroupAdded: type({ ...corporateGroup, name: string() }),
  CorporateGroupRenamed: type({ ...corporateGroup, name: string() }),
  CorporateAdded: type({ ...corporate, name: string(), corporate_group_id: nullable(id) }),
  CorporateRenamed: type({ ...corporate, name: string() }),
  CorporateMoved: type({ ...corporate, corporate_group_id: nullable(id) }),
  KeyIssued: type({
    ...key,
    environment: enums(ENVIRONMENTS),
    label: nullable(string()),
    secret_sha256: string(),
    allow_list: array(string()),
    rate_limit: integer,
    driver_mobile: boolean(),
  }),
  KeySwitchedOff: type({ ...key, ...givenReason }),
  KeySwitchedOn: type(key),
  KeyAllowListSet: type({ ...key, allow_list: array(string()) }),
  KeyRateLimitSet: type({ ...key, rate_limit: integer }),
  KeyDriverMobileSet: type({ ...key, enabled: boolean() }),
  /** `secret` is the secret made with this event, or null if the key keeps the one it has. */
  WebhookUrlSet: type({ ...key, url: string(), set_at: dateTime, secret: nullable(ciphertext) }),
  /** `secret` is the same secret, encrypted with another master key. */
  WebhookSecretRewrapped: type({ ...key, secret: ciphertext }),
  /** `per_second` is the maximum number of deliveries a second, or null if there is none. */
  WebhookRateSet: type({ ...key, per_second: nullable(perSecond) }),
  WebhookRemoved: type({ ...key, ...givenReason }),
  WebhookTestRequested: type({ ...key, delivery_id: string() }),
  WebhookFailing: type({ ...key, ...failureEvidence }),
  WebhookDisabled: type({ ...key, reason: string(), ...failureEvidence }),
  WebhookEnabled: type(key),
  RedeliveryRequested: type({
    ...key,
    delivery_ids: nullable(array(string())),
    since: nullable(dateTime),
    until: nullable(dateTime),
    force: boolean(),
    /** The deliveries of the key to redeliver if no ids are given; by default the failed ones. */
    which: optional(enums(REDELIVERABLE)),
  }),
  /** Redeliveries that are still pending end as failed. */
  RedeliveryCancelled: type({ ...key, ...givenReason }),
} as const;

export type AccountEventType = keyof typeof accountEvents;
type RecordedAccountEvent = {
  [T in AccountEventType]: { readonly type: T; readonly data: Infer<(typeof accountEvents)[T]> };
}[AccountEventType];
/** Stands in place of an event that the operator has skipped. It is never recorded. */
interface SkippedAccountEvent {
  readonly type: 'EventSkipped';
  readonly data: { readonly account_id: number };
}
export type AccountEvent = RecordedAccountEvent | SkippedAccountEvent;
export type Ciphertext = Infer<typeof ciphertext>;

export const ACCOUNT_STREAMS = 'account-';
export const accountStream = (accountId: number): string => `${ACCOUNT_STREAMS}${accountId}`;

export function isAccountEventType(type: string): type is AccountEventType {
  return Object.hasOwn(accountEvents, type);
}
