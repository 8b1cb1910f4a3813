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
  const last = (type: string, prefix?: string): number | undefined =>
    events.find((event) => event.type === type && (prefix === undefined || event.data.prefix === prefix))
      ?.atMs;
  const gate = (code: GateCode, passes: boolean, of: Omit<Gate, 'answer'>): Gate => ({
    ...of,
    answer: passes ? undefined : `${statusOf(code)} ${code}`,
  });
  const gates: Gate[] = [];
  if (key !== undefined) {
    const { active, prefix } = key;
    const on = last('KeySwitchedOn', prefix) ?? last('KeyIssued', prefix);
    const sinceMs = active ? on : last('KeySwitchedOff', prefix);
    const why = active ? 'the key is on' : 'the key was switched off';
    gates.push(gate('INVALID_API_KEY', active, { check: '3 key', sinceMs, why }));
  }
  if (account === undefined) {
    const why = 'the account can not be read';
    return [...gates, gate('SERVICE_UNAVAILABLE', false, { check: 'account', sinceMs: undefined, why })];
  }
  const { integrationEnabled: isOn } = account;
  const off = last('IntegrationDisabled') ?? last('AccountOpened');
  const sinceMs = isOn ? last('IntegrationEnabled') : off;
  const integration = { check: '4 integration', sinceMs, why: `the integration is ${isOn ? 'on' : 'off'}` };
  const { isCurrent, ...profile } = profileOf(account, nowMs);
  return [
    ...gates,
    gate('API_INTEGRATION_NOT_ENABLED', isOn, integration),
    gate('NO_ACTIVE_CHARGING_PROFILE', isCurrent, { check: '5 charging profile', ...profile }),
  ];
}

function profileOf(account: Account, nowMs: number) {
  const periods = [...account.profiles.values()];
  const profile = activeProfile(account, nowMs);
  if (profile !== undefined) {
    const begun = periods.filter(({ fromMs, toMs }) => fromMs <= nowMs && (toMs === null || toMs > nowMs));
    const sinceMs = begun.reduce((first, { fromMs }) => Math.min(first, fromMs), nowMs);
    const why = profile.endsAtMs === null ? 'open-ended' : `until ${formatDateTime(profile.endsAtMs)}`;
    return { isCurrent: true, sinceMs, why };
  }
  const ended = periods.flatMap(({ toMs }) => (toMs !== null && toMs <= nowMs ? [toMs] : []));
  const sinceMs = ended.sort((a, b) => a - b).at(-1);
  // The integration has its own gate.
  const why = noAccessReason({ ...account, integrationEnabled: true }, nowMs) ?? '';
  return { isCurrent: false, sinceMs, why };
}
