import type { Account } from '../src/domain/account.ts';
import type { AccountEvent } from '../src/domain/account-events.ts';

/** Older events cause no e-mail, since a rebuilt or copied store must not mail its history. */
export const NOTICE_MAX_AGE_MS = 24 * 60 * 60 * 1000;

type NoticeEvent = Extract<AccountEvent, { type: 'WebhookFailing' | 'WebhookDisabled' | 'WebhookEnabled' }>;
export type NoticeKind = 'failing' | 'disabled' | 'enabled';

/** One e-mail about an event. */
export interface Notice {
  readonly kind: NoticeKind;
  /** The customer's people or the operator's. They can do different things about it. */
  readonly audience: 'customer' | 'operator';
  /** At least one address. */
  readonly to: readonly string[];
  readonly accountId: number;
  readonly accountName: string;
  readonly prefix: string;
  readonly keyLabel: string | null;
  /** The URL at the time of the event. */
  readonly url: string | null;
  /** When the event happened, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The reason why the webhook was disabled, if it was. */
  readonly reason: string | null;
  readonly failedInARow: number;
  /** A time in ISO 8601 (UTC); `null` if it is not known or nothing failed. */
  readonly failingSince: string | null;
  /** The answers, newest first. */
  readonly lastAnswers: readonly string[];
}

/** True if people are notified of events of this type, unless the events are old. */
export function isNoticeType(type: string): type is NoticeEvent['type'] {
  return type === 'WebhookFailing' || type === 'WebhookDisabled' || type === 'WebhookEnabled';
}

/**
 * Returns the e-mails about an event: one to the account's contacts and one to the operator, if there are addresses,
 * when a webhook fails, is disabled or is enabled. There are none for an event more than 24 hours old. `now` is the
 * account's current state, since today's contacts are notified; `atEvent` is its state when the event happened.
 */
export function noticesFor(
  { event, atMs }: { readonly event: AccountEvent; readonly atMs: number },
  { now: account, atEvent }: { readonly now: Account; readonly atEvent: Account | undefined },
  options: { readonly operatorEmail: string | null; readonly nowMs: number },
): Notice[] {
  if (!isNotified(event) || options.nowMs - atMs > NOTICE_MAX_AGE_MS) return [];
  const key = account.keys.get(event.data.prefix);
  const common = {
    accountId: account.id,
    accountName: account.name,
    prefix: event.data.prefix,
    keyLabel: key?.label ?? null,
    url: atEvent?.keys.get(event.data.prefix)?.webhook?.url ?? null,
    atMs,
    ...streakOf(event),
  };
  const notices: Notice[] = [];
  if (account.emails.length > 0) notices.push({ ...common, audience: 'customer', to: account.emails });
  if (options.operatorEmail !== null) {
    notices.push({ ...common, audience: 'operator', to: [options.operatorEmail] });
  }
  return notices;
}

function isNotified(event: AccountEvent): event is NoticeEvent {
  return isNoticeType(event.type);
}

function streakOf(event: NoticeEvent) {
  if (event.type === 'WebhookEnabled')
    return { kind: 'enabled', reason: null, failedInARow: 0, failingSince: null, lastAnswers: [] } as const;
  return {
    ...(event.type === 'WebhookFailing'
      ? ({ kind: 'failing', reason: null } as const)
      : ({ kind: 'disabled', reason: event.data.reason } as const)),
    failedInARow: event.data.failed_in_a_row,
    failingSince: event.data.failing_since,
    lastAnswers: event.data.last_answers,
  };
}
