import { type DiskState, MAKE_SPACE } from '../../base/disk/disk.ts';
import { aheadMs } from '../../base/time/trusted-clock.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { Damage } from '../../event-store/event-store.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { LaneStreak } from '../../push/queue/delivery.ts';
import type { Backlog } from '../../push/queue/delivery-queue.ts';
import { type FollowerStatus, isIdle, MAX_LAG_SECONDS, roleOf } from '../answers/follower.ts';
import { some } from '../answers/names.ts';
import { MAX_FAILING } from './accounts.ts';
import { act, type Finding, look, merged, notChecked, type Problem } from './check.ts';

/** Time for a renewal that takes people. */
const CERTIFICATE_MS = 14 * DAY_MS;
/** Two nights. */
const REPAIRED_WITHIN_MS = 2 * DAY_MS;
/** Switched-off webhooks that are problems of their own, each with its command. */
const MAX_ONE_BY_ONE = 3;
const MAX_OVERDUE_MS = 5 * 60_000;

/** What is known of the service, from a look at its stores or by a process of it; what is not is not judged. */
export interface Facts {
  readonly atMs: number;
  readonly disk?: DiskState | undefined;
  /** Of the process, by the names of `/readyz`. */
  readonly readiness?: Readonly<Record<string, boolean>> | undefined;
  /** Those of the names that are servers. */
  readonly engines?: readonly string[];
  readonly damage?: readonly Damage[] | undefined;
  readonly followers?: readonly FollowerStatus[] | undefined;
  /** How many accounts there are. */
  readonly accounts?: number | undefined;
  /** Accounts with an event that can't be read. */
  readonly unreadable?: readonly number[] | undefined;
  /** How many webhooks of active keys there are. */
  readonly webhooks?: number | undefined;
  /** The prefixes of those that are switched off. */
  readonly disabled?: readonly string[] | undefined;
  /** Those that fail and are not switched off, the longest streak first. */
  readonly failing?: readonly LaneStreak[] | undefined;
  readonly backlog?: Pick<Backlog, 'pending' | 'held' | 'nextDueAtMs'> | undefined;
  readonly certificateEndsAtMs?: number | undefined;
  /** The newest time that a process has trusted. */
  readonly trustedAtMs?: number | undefined;
  readonly repairs?: readonly { readonly atMs: number; readonly what: string; readonly repaired: string }[];
}

export interface Check {
  /** What makes it a mere consequence. */
  readonly needs?: readonly ('disk-space' | 'engines')[];
  /** The alerts about the same: one of them wakes somebody where somebody has to act. */
  readonly alerts?: readonly string[];
  readonly judge: (facts: Facts) => readonly Problem[];
  /** What doctor says where nothing is wrong. */
  readonly detail?: (facts: Facts) => string;
}

const ALL = ['disk-space', 'engines'] as const;
/** What a process can't keep up while a disk takes nothing or an engine does not answer. */
const FOLLOWING = ['known_to_others', 'event_store_heard', 'subscription_connected'];

/** What doctor, the console's overview and the alerts judge alike. */
export const CHECKS = {
  'disk-space': {
    alerts: ['FuelDiskFull', 'FuelDiskFills', 'FuelDiskLow'],
    judge: ({ disk }) =>
      disk === undefined || (disk.refusal === undefined && !disk.isLow)
        ? []
        : [act('disk', disk.refusal ?? disk.text, ['doctor'], { do: MAKE_SPACE })],
    detail: ({ disk }) => disk?.text ?? '',
  },
  readiness: {
    alerts: ['FuelEngineUnavailable', 'FuelNotReady'],
    judge: (facts) => unready(facts, (name) => !FOLLOWING.includes(name)),
  },
  heard: { needs: ALL, judge: (facts) => unready(facts, (name) => FOLLOWING.includes(name)) },
  damage: {
    judge({ damage = [] }) {
      const [first, ...others] = damage;
      if (first === undefined) return [];
      const more = others.length === 0 ? '' : `, and ${others.length} more`;
      return [act('damage', `damaged: ${describeDamage(first)}${more}`, ['verify'], { do: RESTORE_EVENTS })];
    },
  },
  consumers: {
    needs: ALL,
    judge: ({ followers = [], webhooks = 0 }) =>
      followers
        .filter((follower) => isIdle(follower, { webhooks }))
        .map(({ name }) =>
          act(`follower-${name}-idle`, `no live process works on ${name}`, ['serve', '--role', roleOf(name)]),
        ),
    detail: (facts) => ofFollowers(facts, ({ holder }) => holder ?? 'nothing to do yet'),
  },
  lag: {
    needs: ALL,
    alerts: ['FuelFollowerBehind', 'FuelFollowerSlow'],
    judge: ({ followers = [] }) =>
      followers
        .filter(({ lag_seconds }) => lag_seconds > MAX_LAG_SECONDS)
        .map(({ name, lag_seconds }) =>
          act(
            `follower-${name}-lag`,
            `${name} is ${Math.round(lag_seconds)} s behind the events`,
            ['projection', 'status'],
            {
              do: 'fuel projection status, again after a minute: if a position does not grow, look for errors in the log of its process',
            },
          ),
        ),
    detail: (facts) =>
      ofFollowers(facts, (each) => `${each.lag_events ?? 'many'} events, ${each.lag_seconds} s`),
  },
  'parked-events': {
    alerts: ['FuelEventsParked', 'FuelEventParked'],
    judge: ({ followers = [] }) => followers.filter(({ parked }) => parked > 0).map(parkedProblem),
    detail: (facts) => ofFollowers(facts, ({ parked }) => `${parked}`),
  },
  rebuild: {
    judge: ({ followers = [] }) =>
      followers.flatMap(({ name, unfinished_rebuild_percent: percent }) => {
        if (percent === undefined) return [];
        const text = `a rebuild of ${name} stopped at ${percent} %`;
        return [look(`follower-${name}-rebuild`, text, ['projection', 'rebuild', name])];
      }),
  },
  webhooks: {
    alerts: ['FuelWebhookSwitchedOff'],
    judge: ({ disabled = [], failing = [] }) => [...switchedOff(disabled), ...failingOnes(failing)],
    detail({ webhooks = 0, disabled = [], failing = [], backlog }) {
      const counts = `${webhooks} webhooks, ${disabled.length} switched off, ${failing.length} failing`;
      return `${counts}; deliveries: ${backlog?.pending ?? 0} pending, ${backlog?.held ?? 0} held`;
    },
  },
  accounts: {
    alerts: ['FuelAccountUnreadable'],
    judge({ unreadable = [] }) {
      const [first] = unreadable;
      if (first === undefined) return [];
      const text =
        unreadable.length === 1
          ? `account ${first} is not served: an event of it can not be read`
          : `${unreadable.length} accounts are not served, since an event of each can not be read: ${some(unreadable.map(String))}`;
      const cure =
        `fuel account show ${first} says which event and why; where a newer version wrote it, run that version on ` +
        'every process (docs/operations/troubleshooting.md, "One account answers 503 and others do not")';
      const words = ['account', 'show', String(first)];
      return [act('unreadable', text, words, { do: cure, href: `/accounts/${first}` })];
    },
    detail: ({ accounts = 0 }) => `${accounts} accounts; the events of each can be read`,
  },
  overdue: {
    needs: ALL,
    alerts: ['FuelDeliveriesLate', 'FuelReceiverSlow'],
    judge({ backlog, atMs }) {
      const dueAtMs = backlog?.nextDueAtMs;
      if (dueAtMs === undefined || atMs - dueAtMs <= MAX_OVERDUE_MS) return [];
      const text = `deliveries wait: the first of them has been due since ${formatDateTime(dueAtMs)}`;
      const words = ['delivery', 'list', '--state', 'pending'];
      return [act('overdue', text, words, { href: '/deliveries?state=pending' })];
    },
  },
  certificate: {
    alerts: ['FuelCertificateEndsSoon', 'FuelCertificateEnds'],
    judge({ certificateEndsAtMs: endsAtMs, atMs }) {
      if (endsAtMs === undefined || endsAtMs - atMs >= CERTIFICATE_MS) return [];
      const ends = endsAtMs < atMs ? 'ended' : 'ends';
      const text = `the certificate of the pull API ${ends} at ${formatDateTime(endsAtMs)}`;
      return [act('certificate', text, ['doctor'], { href: '/' })];
    },
  },
  clocks: {
    judge({ trustedAtMs, atMs }) {
      if (trustedAtMs === undefined || aheadMs(atMs, trustedAtMs) === 0) return [];
      const [now, known] = [formatDateTime(atMs), formatDateTime(trustedAtMs)];
      const text = `the clock says ${now}, and the service knew ${known} last: nothing is removed by its age`;
      const cure =
        'set the clock (timedatectl status); where it is right, since the service did not run, removal continues once ' +
        'it has run for a day';
      return [act('clock-ahead', text, ['doctor'], { do: cure, href: '/' })];
    },
  },
  repairs: {
    alerts: ['FuelRepaired'],
    judge: ({ repairs = [], atMs }) =>
      repairs
        .filter((repair) => atMs - repair.atMs < REPAIRED_WITHIN_MS)
        .map((repair, at) => {
          const text = `${repair.repaired} of ${repair.what} differed from the events and were repaired at ${formatDateTime(repair.atMs)}`;
          return look(`repair-${at}`, text, ['verify', '--explain']);
        }),
  },
} as const satisfies Readonly<Record<string, Check>>;

/** As doctor names it, where that judges it too. */
export type CheckId = keyof typeof CHECKS;

/** All that is not right, those first that do not end before somebody acts. */
export function problemsIn(facts: Facts): readonly Problem[] {
  const all = Object.values(CHECKS).flatMap((check) =>
    causesOf(check, facts).length > 0 ? [] : check.judge(facts),
  );
  return all.toSorted((a, b) => Number(a.ok) - Number(b.ok));
}

/** What doctor says of a check; it is not made where what it needs is wrong. */
export function judged(id: CheckId, facts: Facts): Finding {
  const check: Check = CHECKS[id];
  const causes = causesOf(check, facts);
  return causes.length > 0 ? notChecked(causes) : merged(check.judge(facts), check.detail?.(facts) ?? '');
}

function causesOf({ needs = [] }: Check, { disk, engines = [], readiness }: Facts): string[] {
  const failed = {
    'disk-space': disk?.refusal === undefined ? [] : ['disk-space'],
    engines: engines.filter((name) => readiness?.[name] === false),
  };
  return needs.flatMap((need) => failed[need]);
}

function ofFollowers({ followers = [] }: Facts, describe: (follower: FollowerStatus) => string): string {
  return followers.map((each) => `${each.name}: ${describe(each)}`).join('; ');
}

function parkedProblem({ name, parked }: FollowerStatus): Problem {
  const of = name === VIEW_NAME ? [] : ['--follower', name];
  const words = ['projection', 'parked', ...of];
  const retry = ['projection parked retry --all', ...of].join(' ');
  const text =
    parked === 1
      ? `an event of ${name} is parked, and left out until it is retried`
      : `${parked} events of ${name} are parked, and left out until they are retried`;
  const cure = `fuel ${words.join(' ')} names each with its reason; repair the cause, then: fuel ${retry}`;
  return act(`follower-${name}-parked`, text, words, { do: cure });
}

function unready({ readiness = {}, engines = [] }: Facts, isWanted: (name: string) => boolean): Problem[] {
  const names = Object.keys(readiness).filter(
    (name) => readiness[name] === false && name !== 'disk' && isWanted(name),
  );
  return names.map((name) => {
    const isEngine = engines.includes(name);
    const text = isEngine ? `${name} can not be reached` : `this process is not ready: ${name} does not hold`;
    return act(`check-${name}`, text, ['doctor']);
  });
}

/** The customers' to repair. */
function switchedOff(disabled: readonly string[]): Problem[] {
  const [first] = disabled;
  if (first === undefined) return [];
  if (disabled.length > MAX_ONE_BY_ONE) {
    const text = `${disabled.length} webhooks are switched off: nothing is sent to ${some(disabled)}`;
    return [look('disabled', text, ['webhook', 'show', first], { href: '/webhooks?state=disabled' })];
  }
  return disabled.map((prefix) => {
    const text = `the webhook of key ${prefix} is switched off: nothing is sent to it`;
    return look(`disabled-${prefix}`, text, ['webhook', 'show', prefix], { href: `/keys/${prefix}` });
  });
}

function failingOnes(failing: readonly LaneStreak[]): Problem[] {
  const [worst] = failing;
  if (worst === undefined) return [];
  const { prefix, failedInARow, lastAnswers } = worst;
  const isOne = failing.length === 1;
  const many = failing.length >= MAX_FAILING ? `${MAX_FAILING} or more` : failing.length;
  const streak = `${failedInARow} in a row, the last answer ${lastAnswers[0] ?? 'unknown'}`;
  const text = isOne
    ? `deliveries to key ${prefix} fail: ${streak}`
    : `deliveries to ${many} webhooks fail; the longest streak is of key ${prefix}: ${streak}`;
  const href = isOne ? `/keys/${prefix}` : '/webhooks?state=failing';
  return [look('failing', text, ['webhook', 'test', prefix], { href })];
}
