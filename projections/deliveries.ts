import type { Account, AccountKey } from '../src/domain/account.ts';
import type { AccountEvent, Environment } from '../src/domain/account-events.ts';

/** The facts of a confirmed or external transaction that decide who is owed it. */
export interface AnnouncedTransaction {
  readonly createdAtMs: number;
  /** When its event happened, according to the metadata, which a copy of the event keeps. */
  readonly occurredAtMs: number;
}

export interface DeliveryTerms {
  /** The delivery log keeps ended deliveries for this long. After that a second delivery could not be recognised. */
  readonly retentionMs: number;
  readonly nowMs: number;
  /** The environment of the deployment, which does not know keys of the other one. */
  readonly environment: Environment;
}

export interface OwedDelivery {
  readonly prefix: string;
  /** True if the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
}

export interface DeliveryDecision {
  readonly owed: readonly OwedDelivery[];
  /** Every other key of the account, with the reason why nothing is owed to it. */
  readonly notSent: readonly { readonly key: string; readonly reason: string }[];
}

/**
 * Decides to which keys of the account a transaction is owed, and why not to the others. `account` is the account as
 * the events before the transaction's left it; `undefined` if it was not open by then. Access checks 4 and 5 do not
 * matter here: they hold a delivery, they do not cancel it.
 */
export function decideDeliveries(
  transaction: AnnouncedTransaction,
  account: Pick<Account, 'keys'> | undefined,
  terms: DeliveryTerms,
): DeliveryDecision {
  const owed: OwedDelivery[] = [];
  const notSent: { key: string; reason: string }[] = [];
  for (const key of account?.keys.values() ?? []) {
    const reason = whyNot(transaction, key, terms);
    if (reason === undefined) owed.push({ prefix: key.prefix, mobileNumber: key.driverMobile });
    else notSent.push({ key: key.prefix, reason });
  }
  return { owed, notSent };
}

/** True if the event is too old for a delivery. */
export function isPastRetention(
  occurredAtMs: number,
  { retentionMs, nowMs }: Pick<DeliveryTerms, 'retentionMs' | 'nowMs'>,
): boolean {
  return occurredAtMs < nowMs - retentionMs;
}

/** Returns why nothing may be sent to the key now, whatever the transaction; `undefined` if something may. */
export function keyIneligibleReason(key: AccountKey, environment: Environment): string | undefined {
  if (key.environment !== environment) return `the key belongs to ${key.environment}`;
  if (!key.active) return 'the key is switched off';
  if (key.webhook === null) return 'the key has no webhook';
  const { disabled } = key.webhook;
  return disabled === null ? undefined : `the webhook is disabled: ${disabled.reason}`;
}

function whyNot(
  transaction: AnnouncedTransaction,
  key: AccountKey,
  terms: DeliveryTerms,
): string | undefined {
  const ineligibleReason = keyIneligibleReason(key, terms.environment);
  if (ineligibleReason !== undefined) return ineligibleReason;
  if (key.webhook !== null && transaction.createdAtMs < key.webhook.setAtMs) {
    return 'the transaction was created before the webhook URL was set';
  }
  if (!isPastRetention(transaction.occurredAtMs, terms)) return undefined;
  return 'the transaction was recorded longer ago than the delivery log is kept';
}

/** The effect of an event on the deliveries of a key: the pending ones end, or its webhook has been enabled. */
export type DeliveryEffect =
  | { readonly kind: 'ended'; readonly prefix: string; readonly reason: string }
  | { readonly kind: 'enabled'; readonly prefix: string };

/** Returns the effect of an event on deliveries; `undefined` if it has none. */
export function deliveryEffect({ type, data }: AccountEvent): DeliveryEffect | undefined {
  switch (type) {
    case 'KeySwitchedOff':
      return { kind: 'ended', prefix: data.prefix, reason: 'the key was switched off' };
    case 'WebhookRemoved':
      return { kind: 'ended', prefix: data.prefix, reason: 'the webhook was removed' };
    case 'WebhookDisabled':
      return { kind: 'ended', prefix: data.prefix, reason: disabledReason(data.reason) };
    case 'WebhookEnabled':
      return { kind: 'enabled', prefix: data.prefix };
    default:
      return undefined;
  }
}

/** The reason for the end of a delivery that was pending when its webhook was disabled. */
export function disabledReason(reason: string): string {
  return `the webhook was disabled: ${reason}`;
}
