import { type Account, type AccountKey, profileAccess } from '../../../domain/account.ts';
import { type RefusalCode, refusals } from '../../../pull/answers.ts';
import { profileReason } from '../../answers/access.ts';
import { type Column, state, type Table, table, time } from '../../answers/columns.ts';
import type { LoggedEvent } from '../figures/tails.ts';

/** One access check as it stands now. */
interface Gate {
  readonly check: string;
  /** How it refuses. */
  readonly code: RefusalCode;
  readonly passes: boolean;
  /** `undefined` where it is not known. */
  readonly sinceMs?: number | undefined;
  readonly why: string;
}

const COLUMNS: readonly Column<Gate>[] = [
  { head: 'Check', cell: ({ check }) => check },
  { head: 'Now', cell: ({ passes }) => (passes ? state('passes', 'good') : state('refuses', 'bad')) },
  {
    head: 'Requests get',
    cell: ({ passes, code }) => (passes ? 'passes' : `answers ${refusals[code].status} ${code}`),
  },
  { head: 'Since', cell: ({ sinceMs }) => (sinceMs === undefined ? 'unknown' : time(sinceMs)) },
  { head: 'Why', cell: ({ why }) => why },
];

interface GateOptions {
  readonly account: Account | undefined;
  readonly key?: AccountKey;
  readonly nowMs: number;
  /** The newest events of the account, newest first: they say since when. */
  readonly events: readonly LoggedEvent[];
}

/** Access checks 3 to 5: the key, if one is asked about, then the integration and the charging profile. */
export function gatesTable({ account, key, nowMs, events }: GateOptions): Table {
  const last = (type: string, prefix?: string): number | undefined =>
    events.find((event) => event.type === type && (prefix === undefined || event.data.prefix === prefix))
      ?.atMs;
  const of = [...(key === undefined ? [] : [keyGate(key, last)]), ...accountGates(account, nowMs)];
  return table('Access as it stands now', COLUMNS, { of, idOf: ({ check }) => check, empty: 'none' });
}

/** When the newest event of a type was recorded. */
type Last = (type: string, prefix?: string) => number | undefined;

function keyGate({ active, prefix }: AccountKey, last: Last): Gate {
  const on = last('KeySwitchedOn', prefix) ?? last('KeyIssued', prefix);
  return {
    ...{ check: '3 key', code: 'INVALID_API_KEY', passes: active },
    sinceMs: active ? on : last('KeySwitchedOff', prefix),
    why: active ? 'the key is on' : 'the key was switched off',
  };
}

function accountGates(account: Account | undefined, nowMs: number): Gate[] {
  if (account === undefined) {
    const why = 'the account can not be read';
    return [{ check: 'account', code: 'SERVICE_UNAVAILABLE', passes: false, why }];
  }
  const { enabled, sinceMs } = account.integration;
  const profile = profileAccess(account, nowMs);
  return [
    {
      ...{ check: '4 integration', code: 'API_INTEGRATION_NOT_ENABLED', passes: enabled, sinceMs },
      why: `the integration is ${enabled ? 'on' : 'off'}`,
    },
    {
      ...{ check: '5 charging profile', code: 'NO_ACTIVE_CHARGING_PROFILE' },
      ...{ passes: profile.active, sinceMs: profile.sinceMs },
      why: profileReason(profile),
    },
  ];
}
