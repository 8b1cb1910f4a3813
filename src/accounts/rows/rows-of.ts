import type { AccessTerms, Account, AccountKey } from '../../domain/account.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { FoldedAccount, FoldedKey } from './fold-account.ts';
import { type AccountRow, type KeyRow, type MemberKind, type MemberRow, memberId } from './tables.ts';

type PlainMap<T> = T extends ReadonlyMap<infer K, infer V> ? readonly (readonly [K, V])[] : T;
type Plain<T> = { readonly [Field in keyof T]: PlainMap<T[Field]> };

/** The part of an account that its row contains, apart from the name. */
export type AccountDetails = Pick<
  Account,
  'closed' | 'emails' | 'integration' | 'profiles' | 'profileChangedAtMs'
>;

/** The access of an account that can't be read and was never open: none. */
const NO_ACCESS: AccessTerms = {
  integration: { enabled: false, sinceMs: 0 },
  profiles: new Map(),
  profileChangedAtMs: null,
};

export function accountRow(
  { id, revision, account, unreadable }: FoldedAccount,
  position: Position,
): AccountRow {
  const isReadable = unreadable === undefined && account !== undefined;
  return {
    id,
    position,
    revision,
    name: account?.name ?? null,
    details: isReadable ? detailsText(account) : null,
    unreadable: unreadable?.reason ?? null,
    unreadable_at: unreadable?.position ?? null,
  };
}

export function keyRow(
  { id, account, unreadable }: FoldedAccount,
  { key, ended, enabledAtMs }: FoldedKey,
  position: Position,
): KeyRow {
  const { prefix, active, webhook, webhookSecret } = key;
  const isOn = active && webhook !== null && unreadable === undefined;
  return {
    prefix,
    account_id: id,
    position,
    unreadable: unreadable?.reason ?? null,
    settings: JSON.stringify(key),
    access: accessText(account ?? NO_ACCESS),
    ended_at: ended?.position ?? null,
    ended_reason: ended?.reason ?? null,
    enabled_at: enabledAtMs ?? null,
    master_key: webhookSecret?.master_key_id ?? null,
    webhook: isOn ? (webhook.disabled === null ? 'active' : 'disabled') : null,
    disabled_at: isOn ? (webhook.disabled?.sinceMs ?? null) : null,
  };
}

/** Yields the rows of an account's groups and corporates, or of those that are `named` by the ids of their rows. */
export function* memberRows(
  { id, account }: FoldedAccount,
  position: Position,
  named?: ReadonlySet<string>,
): Generator<MemberRow, void> {
  const rowOf = (kind: MemberKind, number: number, name: string, groupId: number | null): MemberRow => ({
    id: memberId(id, kind, number),
    account_id: id,
    kind,
    number,
    position,
    name,
    group_id: groupId,
  });
  const isNamed = (kind: MemberKind, number: number) => named?.has(memberId(id, kind, number)) ?? true;
  for (const [number, { name }] of account?.groups ?? [])
    if (isNamed('group', number)) yield rowOf('group', number, name, null);
  for (const [number, { name, groupId }] of account?.corporates ?? [])
    if (isNamed('corporate', number)) yield rowOf('corporate', number, name, groupId);
}

export function accessText({ integration, profiles, profileChangedAtMs }: AccessTerms): string {
  return JSON.stringify({
    integration,
    profiles: [...profiles],
    profileChangedAtMs,
  } satisfies Plain<AccessTerms>);
}

export function accessIn(text: string): AccessTerms {
  const { profiles, ...rest } = JSON.parse(text) as Plain<AccessTerms>;
  return { ...rest, profiles: new Map(profiles) };
}

function detailsText({ closed, emails, integration, profiles, profileChangedAtMs }: AccountDetails): string {
  const plain = { closed, emails, integration, profiles: [...profiles], profileChangedAtMs };
  return JSON.stringify(plain satisfies Plain<AccountDetails>);
}

export function detailsIn(text: string): AccountDetails {
  const { profiles, ...rest } = JSON.parse(text) as Plain<AccountDetails>;
  return { ...rest, profiles: new Map(profiles) };
}

export function keyIn({ settings }: Pick<KeyRow, 'settings'>): AccountKey {
  return JSON.parse(settings) as AccountKey;
}
