import { noAccessReason } from '../../../accounts/account-state.ts';
import { type Account, type AccountKey, activeProfile } from '../../../domain/account.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import type { ConsoleParts, GateCode } from './parts.ts';
import type { LoggedEvent } from './tails.ts';

/** One access check as it stands now. */
export interface Gate {
  readonly check: string;
  /** How it refuses: `403 NO_ACTIVE_CHARGING_PROFILE`; `undefined` where it passes. */
  readonly answer: string | undefined;
  /** `undefined` where it is not known. */
  readonly sinceMs: number | undefined;
  readonly why: string;
}

export interface GateOptions {
  readonly account: Account | undefined;
  readonly key?: AccountKey;
  readonly statusOf: ConsoleParts['statusOf'];
  readonly nowMs: number;
  /** The newest events of the account, newest first: they say since when. */
  readonly events: readonly LoggedEvent[];
}

/** Access checks 3 to 5: the key, if one is asked about, then the integration and the charging profile. */
export function gatesOf({ account, key, statusOf, nowMs, events }: GateOptions): readonly Gate[] {
  const refusal = (code: GateCode): string => `${statusOf(code)} ${code}`;
  const last = (type: string, prefix?: string): number | undefined =>
    events.find((event) => event.type === type && (prefix === undefined || event.data.prefix === prefix))
      ?.atMs;
  const gates: Gate[] = [];
  if (key !== undefined) {
    const { active, prefix } = key;
    gates.push({
      check: '3 key',
      answer: active ? undefined : refusal('INVALID_API_KEY'),
      sinceMs: active
        ? (last('KeySwitchedOn', prefix) ?? last('KeyIssued', prefix))
        : last('KeySwitchedOff', prefix),
      why: active ? 'the key is on' : 'the key was switched off',
    });
  }
  if (account === undefined) {
    const why = 'the account can not be read';
    return [...gates, { check: 'account', answer: refusal('SERVICE_UNAVAILABLE'), sinceMs: undefined, why }];
  }
  const { integrationEnabled } = account;
  gates.push({
    check: '4 integration',
    answer: integrationEnabled ? undefined : refusal('API_INTEGRATION_NOT_ENABLED'),
    sinceMs: integrationEnabled
      ? last('IntegrationEnabled')
      : (last('IntegrationDisabled') ?? last('AccountOpened')),
    why: integrationEnabled ? 'the integration is on' : 'the integration is off',
  });
  return [...gates, profileGate(account, nowMs, refusal)];
}

function profileGate(account: Account, nowMs: number, refusal: (code: GateCode) => string): Gate {
  const check = '5 charging profile';
  const periods = [...account.profiles.values()];
  const profile = activeProfile(account, nowMs);
  if (profile !== undefined) {
    const begun = periods.filter(({ fromMs, toMs }) => fromMs <= nowMs && (toMs === null || toMs > nowMs));
    const sinceMs = begun.reduce((first, { fromMs }) => Math.min(first, fromMs), nowMs);
    const why = profile.endsAtMs === null ? 'open-ended' : `until ${formatDateTime(profile.endsAtMs)}`;
    return { check, answer: undefined, sinceMs, why };
  }
  const ended = periods.flatMap(({ toMs }) => (toMs !== null && toMs <= nowMs ? [toMs] : []));
  const sinceMs = ended.length === 0 ? undefined : ended.reduce((a, b) => Math.max(a, b));
  // The integration has its own gate.
  const why = noAccessReason({ ...account, integrationEnabled: true }, nowMs) ?? '';
  return { check, answer: refusal('NO_ACTIVE_CHARGING_PROFILE'), sinceMs, why };
}
