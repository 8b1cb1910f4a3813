import type { Account } from '../src/domain/account.ts';
import type { AccountEvent } from '../src/domain/account-events.ts';

/** No e-mail for older events: a rebuilt or copied store must not mail its history. */
export const NOTICE_MAX_AGE_MS = 24 * 60 * 60 * 1000;

type NoticeEvent = Extract<AccountEvent, { type: 'WebhookFailing' | 'WebhookDisabled' | 'WebhookEnabled' }>;
export type NoticeKind = 'failing' | 'disabled' | 'enabled';

/** One e-mail about an event. */
export interface Notice {
  readonly kind: NoticeKind;
  /** The customer's own people, or the operator's: they can do different things about it. */
  readonly audience: 'customer' | 'operator';
  /** At least one address. */
  readonly to: readonly string[];
  readonly accountId: number;
  readonly accountName: string;
  readonly prefix: string;
  readonly keyLabel: string | null;
  /** As it was when it happened. */
  readonly url: string | null;
  /** When it happened, milliseconds. */
  readonly atMs: number;
  /** Of a disabled webhook. */
  readonly reason: string | null;
  readonly failedInARow: number;
  /** ISO 8601 UTC; `null` where it is not known, or nothing failed. */
  readonly failingSince: string | null;
  /** Newest first. */
  readonly lastAnswers: readonly string[];
}

/** Whether an event is of a kind that people are notified of, whatever its age. */
export function needsNotice(event: AccountEvent): event is NoticeEvent {
  return (
    event.type === 'WebhookFailing' || event.type === 'WebhookDisabled' || event.type === 'WebhookEnabled'
  );
}

/**
 * The e-mails about an event: one to the account's contacts and one to the operator, each where there is an address,
 * when a webhook fails, is disabled or is enabled. None for an event more than 24 hours old. `now` is the account's present
 * state: today's contacts are notified. `atEvent` is its state when it happened.
 */
export function noticesFor(
  { event, atMs }: { readonly event: AccountEvent; readonly atMs: number },
  { now: account, atEvent }: { readonly now: Account; readonly atEvent: Account | undefined },
  options: { readonly operatorEmail: string | null; readonly nowMs: number },
): Notice[] {
  if (!needsNotice(event) || options.nowMs - atMs > NOTICE_MAX_AGE_MS) return [];
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
