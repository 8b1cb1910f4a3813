import type { Directory } from '../../../projections/directory.ts';
import type { DirectoryAccount } from '../../../projections/directory-entry.ts';
import { ACCOUNT_STREAMS, type AccountEvent, isAccountEventType } from '../../domain/account-events.ts';
import { decodeStrict, recordedAtMs } from '../../event-store/codec.ts';
import type { RecordedEvent } from '../../event-store/event-store.ts';
import { isSkipped, NONE_SKIPPED, type SkippedEvents } from '../../event-store/skipped-events.ts';

/** An account's event and when it happened, or why it can't be read. */
export type ReadAccountEvent =
  | { readonly ok: true; readonly event: AccountEvent; readonly atMs: number }
  | { readonly ok: false; readonly reason: string };

export function readAccountEvent(
  recorded: RecordedEvent,
  skipped: SkippedEvents = NONE_SKIPPED,
): ReadAccountEvent {
  if (isSkipped(skipped, recorded)) {
    const data = { account_id: Number(recorded.stream.slice(ACCOUNT_STREAMS.length)) };
    return { ok: true, event: { type: 'EventSkipped', data }, atMs: recordedAtMs(recorded) };
  }
  const decoded = decodeStrict(recorded);
  if (!decoded.ok) return decoded;
  if (!isAccountEventType(decoded.type)) {
    return { ok: false, reason: `${decoded.type} does not belong in an account's stream` };
  }
  const atMs = recordedAtMs(recorded);
  return { ok: true, event: { type: decoded.type, data: decoded.data } as AccountEvent, atMs };
}

/** Applies a recorded event of an account's stream; returns the account where this event closed it. */
export function applyToDirectory(
  directory: Directory,
  recorded: RecordedEvent,
  skipped: SkippedEvents = NONE_SKIPPED,
): DirectoryAccount | undefined {
  return applyRead(directory, recorded, readAccountEvent(recorded, skipped));
}

/** As `applyToDirectory`, of an event that was read already. */
export function applyRead(
  directory: Directory,
  { position, stream, revision }: RecordedEvent,
  read: ReadAccountEvent,
): DirectoryAccount | undefined {
  return directory.apply({ position, stream, revision, decoded: read });
}
