import { randomUUID } from 'node:crypto';
import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { loadAccount } from '../../accounts/directory/load-directory.ts';
import { accountStream } from '../../domain/account-events.ts';
import { metadataOf } from '../../event-store/new-event.ts';
import { skipEvent } from '../../operator/parked/skip-event.ts';
import { PROFILE } from '../sample/sample-directory.ts';

/** What the API can be made to answer, until something else is asked for. */
export const ANSWERS = {
  good: 'pages again',
  429: 'RATE_LIMITED: the key has 1 request in 60 s, and it is used up',
  503: 'SERVICE_UNAVAILABLE: the account can not be read',
  expired: '403 NO_ACTIVE_CHARGING_PROFILE: its charging profile has ended',
} as const;

export type AnswerKind = `${keyof typeof ANSWERS}`;

export interface AnswerOf {
  readonly accountId: number;
  readonly prefix: string;
  /** The limit of `good` answers. */
  readonly rateLimit: number;
}

/** Records what leads to such answers in the service itself, on an account that is as at the start again before. */
export async function recordAnswer(
  kind: AnswerKind,
  { accountId, prefix, rateLimit }: AnswerOf,
  writer: AccountWriter,
): Promise<void> {
  const { store, clock, author } = writer;
  const unreadable = (await loadAccount(store, accountId))?.unreadable;
  if (unreadable) await skipEvent(store, unreadable.position, { author, clock, reason: 'asked for' });
  const nowMs = clock.now();
  const profile = { profile: PROFILE, fromMs: 0, toMs: kind === 'expired' ? nowMs : null };
  await changeAccount(writer, accountId, [
    { type: 'SetChargingProfile', accountId, ...profile },
    { type: 'SetKeyRateLimit', accountId, prefix, rateLimit: kind === '429' ? 1 : rateLimit },
  ]);
  if (kind !== '503') return;
  const event = { id: randomUUID(), type: 'MockUnavailable', data: { account_id: accountId } };
  const events = [{ ...event, metadata: metadataOf(author, nowMs) }];
  await store.append([{ stream: accountStream(accountId), expected: 'any', events }]);
}
