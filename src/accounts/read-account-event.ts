import type { Account } from '../domain/account.ts';
import { ACCOUNT_STREAMS, type AccountEvent, isAccountEventType } from '../domain/account-events.ts';
import { type AccountDraft, nextDraft } from '../domain/account-evolve.ts';
import { decodeStrict, occurredAtMs } from '../event-store/codec.ts';
import { missingBefore, type RecordedEvent } from '../event-store/recorded-event.ts';
import { isSkipped, NONE_SKIPPED, type SkippedEvents } from '../event-store/skipped-events.ts';

/** An account's event and when it happened, or why it can't be read. */
export type ReadAccountEvent =
  | { readonly ok: true; readonly event: AccountEvent; readonly atMs: number }
  | { readonly ok: false; readonly reason: string };

function accountIdOf(stream: string): number {
  return Number(stream.slice(ACCOUNT_STREAMS.length));
}

export function readAccountEvent(
  recorded: RecordedEvent,
  skipped: SkippedEvents = NONE_SKIPPED,
): ReadAccountEvent {
  if (isSkipped(skipped, recorded)) {
    const data = { account_id: accountIdOf(recorded.stream) };
    return { ok: true, event: { type: 'EventSkipped', data }, atMs: occurredAtMs(recorded) };
  }
  const decoded = decodeStrict(recorded);
  if (!decoded.ok) return decoded;
  if (!isAccountEventType(decoded.type)) {
    return { ok: false, reason: `${decoded.type} does not belong in an account's stream` };
  }
  const atMs = occurredAtMs(recorded);
  return { ok: true, event: { type: decoded.type, data: decoded.data } as AccountEvent, atMs };
}

/**
 * Folds all events of an account's stream. Returns the account, `undefined` if there are no events, or a fault that
 * names the first event that can't be read or can't follow those before it.
 */
export function foldRecorded(
  history: readonly RecordedEvent[],
  skipped: SkippedEvents,
): { readonly account: Account | undefined } | { readonly fault: string } {
  const [first] = history;
  if (first !== undefined && first.revision > 0) return { fault: missingBefore(first) };
  let account: AccountDraft | undefined;
  for (const recorded of history) {
    const { stream, revision, type } = recorded;
    const read = readAccountEvent(recorded, skipped);
    const next = read.ok ? nextDraft(account, read, accountIdOf(stream)) : { fault: read.reason };
    if ('fault' in next) return { fault: `event ${revision} of its stream, ${type}: ${next.fault}` };
    account = next;
  }
  return { account };
}
