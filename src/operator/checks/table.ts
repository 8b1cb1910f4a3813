import { type DiskState, MAKE_SPACE } from '../../base/disk/disk.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { Damage } from '../../event-store/event-store.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { LaneStreak } from '../../push/queue/delivery.ts';
import { type FollowerStatus, isIdle, MAX_LAG_SECONDS, roleOf } from '../answers/followers/follower.ts';
import { some } from '../answers/names.ts';
import { MAX_FAILING } from './accounts.ts';
import { type Finding, notChecked, right, wrong } from './check.ts';

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
  /** Accounts with an event that can't be read. */
  readonly unreadable?: readonly number[] | undefined;
  /** How many webhooks of active keys there are. */
  readonly webhooks?: number | undefined;
  /** The prefixes of those that are switched off. */
  readonly disabled?: readonly string[] | undefined;
  /** Those that fail and are not switched off, the longest streak first. */
  readonly failing?: readonly LaneStreak[] | undefined;
  readonly oldestDueAtMs?: number | undefined;
  readonly certificateEndsAtMs?: number | undefined;
  readonly repairs?: readonly { readonly atMs: number; readonly what: string; readonly repaired: string }[];
}

export interface Problem {
  /** The same for the same thing in every look. */
  readonly id: string;
  readonly text: string;
  /** Where the command alone does not say it. */
  readonly do?: string;
  /** The words of a command after `fuel`. */
  readonly words: readonly string[];
  /** The console's page that says more; that of projections unless given. */
  readonly href?: string;
}

export interface Check {
  /** `act` does not end before somebody acts, and makes doctor's check wrong. */
  readonly severity: 'act' | 'look';
  /** What makes it a mere consequence. */
  readonly needs?: readonly ('disk-space' | 'engines')[];
  /** The alerts about the same: `act` where one of them wakes somebody. */
  readonly alerts?: readonly string[];
  readonly judge: (facts: Facts) => readonly Problem[];
}

const ALL = ['disk-space', 'engines'] as const;
/** What a process can't keep up while a disk takes nothing or an engine does not answer. */
const FOLLOWING = ['known_to_others', 'event_store_heard', 'subscription_connected', 'api_threads_ready'];

/** What doctor, the console's overview and the alerts judge alike. */
export const CHECKS = {
  'disk-space': {
    severity: 'act',
    alerts: ['FuelDiskFull', 'FuelDiskFills', 'FuelDiskLow'],
    judge: ({ disk }) =>
      disk === undefined || (disk.refusal === undefined && !disk.isLow)
        ? []
        : [{ id: 'disk', text: disk.refusal ?? disk.text, do: MAKE_SPACE, words: ['doctor'] }],
  },
  readiness: {
    severity: 'act',
    alerts: ['FuelEngineUnavailable', 'FuelNotReady'],
    judge: (facts) => unready(facts, (name) => !FOLLOWING.includes(name)),
  },
  heard: {
    severity: 'act',
    needs: ALL,
    judge: (facts) => unready(facts, (name) => FOLLOWING.includes(name)),
  },
  damage: {
    severity: 'act',
    judge({ damage = [] }) {
      const [first, ...others] = damage;
      if (first === undefined) return [];
      const more = others.length === 0 ? '' : `, and ${others.length} more`;
      const text = `damaged: ${describeDamage(first)}${more}`;
      return [{ id: 'damage', text, do: RESTORE_EVENTS, words: ['verify'] }];
    },
  },
  consumers: {
    severity: 'act',
    needs: ALL,
    judge: ({ followers = [], webhooks = 0 }) =>
      followers
        .filter((follower) => isIdle(follower, { webhooks }))
        .map(({ name }) => ({
          id: `follower-${name}-idle`,
          text: `no live process works on ${name}`,
          words: ['serve', '--role', roleOf(name)],
        })),
  },
  lag: {
    severity: 'act',
    needs: ALL,
    alerts: ['FuelFollowerBehind', 'FuelFollowerSlow'],
    judge: ({ followers = [] }) =>
      followers
        .filter(({ lag_seconds }) => lag_seconds > MAX_LAG_SECONDS)
        .map(({ name, lag_seconds }) => ({
          id: `follower-${name}-lag`,
          text: `${name} is ${Math.round(lag_seconds)} s behind the events`,
          do: 'fuel projection status, again after a minute: if a position does not grow, look for errors in the log of its process',
          words: ['projection', 'status'],
        })),
  },
  'parked-events': {
    severity: 'act',
    alerts: ['FuelEventsParked', 'FuelEventParked', 'FuelNoticesParked'],
    judge: ({ followers = [] }) =>
      followers
        .filter(({ parked }) => parked > 0)
        .map(({ name, parked }) => {
          const of = name === VIEW_NAME ? [] : ['--follower', name];
          const words = ['projection', 'parked', ...of];
          const retry = ['projection parked retry --all', ...of].join(' ');
          return {
            id: `follower-${name}-parked`,
            text:
              parked === 1
                ? `an event of ${name} is parked, and left out until it is retried`
                : `${parked} events of ${name} are parked, and left out until they are retried`,
            do: `fuel ${words.join(' ')} names each with its reason; repair the cause, then: fuel ${retry}`,
            words,
          };
        }),
  },
  rebuild: {
    severity: 'look',
    judge: ({ followers = [] }) =>
      followers.flatMap(({ name, unfinished_rebuild_percent: percent }) => {
        if (percent === undefined) return [];
        const text = `a rebuild of ${name} stopped at ${percent} %`;
        return [{ id: `follower-${name}-rebuild`, text, words: ['projection', 'rebuild', name] }];
      }),
  },
  webhooks: {
    severity: 'look', // the customers' to repair
    alerts: ['FuelWebhookSwitchedOff'],
    judge: ({ disabled = [], failing = [] }) => [...switchedOff(disabled), ...failingOnes(failing)],
  },
  accounts: {
    severity: 'act',
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
      return [{ id: 'unreadable', text, do: cure, words, href: `/accounts/${first}` }];
    },
  },
  overdue: {
    severity: 'act',
    needs: ALL,
    alerts: ['FuelDeliveriesLate', 'FuelReceiverSlow'],
    judge({ oldestDueAtMs, atMs }) {
      if (oldestDueAtMs === undefined || atMs - oldestDueAtMs <= MAX_OVERDUE_MS) return [];
      const text = `deliveries wait: the first of them has been due since ${formatDateTime(oldestDueAtMs)}`;
      const words = ['delivery', 'list', '--state', 'pending'];
      return [{ id: 'overdue', text, words, href: '/deliveries?state=pending' }];
    },
  },
  certificate: {
    severity: 'act',
    alerts: ['FuelCertificateEndsSoon', 'FuelCertificateEnds'],
    judge({ certificateEndsAtMs: endsAtMs, atMs }) {
      if (endsAtMs === undefined || endsAtMs - atMs >= CERTIFICATE_MS) return [];
      const ends = endsAtMs < atMs ? 'ended' : 'ends';
      const text = `the certificate of the pull API ${ends} at ${formatDateTime(endsAtMs)}`;
      return [{ id: 'certificate', text, words: ['doctor'], href: '/' }];
    },
  },
  repairs: {
    severity: 'look',
    alerts: ['FuelRepaired'],
    judge: ({ repairs = [], atMs }) =>
      repairs
        .filter((repair) => atMs - repair.atMs < REPAIRED_WITHIN_MS)
        .map((repair, at) => ({
          id: `repair-${at}`,
          text: `${repair.repaired} of ${repair.what} differed from the events and were repaired at ${formatDateTime(repair.atMs)}`,
          words: ['verify', '--explain'],
        })),
  },
} as const satisfies Readonly<Record<string, Check>>;

/** As doctor names it, where that judges it too. */
export type CheckId = keyof typeof CHECKS;

/** Every check in the order of the table. */
export function judge(facts: Facts) {
  return (Object.keys(CHECKS) as CheckId[]).map((id) => verdictOf(id, facts));
}

/** A check whose need is not met finds nothing, for these `causes`. */
export function verdictOf(id: CheckId, facts: Facts) {
  const failed = {
    'disk-space': facts.disk?.refusal === undefined ? [] : ['disk-space'],
    engines: (facts.engines ?? []).filter((name) => facts.readiness?.[name] === false),
  };
  const { severity, needs = [], judge }: Check = CHECKS[id];
  const causes = needs.flatMap((need) => failed[need]);
  return { id, severity, causes, problems: causes.length === 0 ? judge(facts) : [] };
}

/** What doctor says of it; `detail` where nothing is wrong. */
export function judged(id: CheckId, facts: Facts, detail: string): Finding {
  const { severity, problems, causes } = verdictOf(id, facts);
  if (causes.length > 0) return notChecked(causes);
  if (problems.length === 0) return right(detail);
  const commandOf = ({ words }: Problem): string => `fuel ${words.join(' ')}`;
  if (severity === 'look') {
    return right([detail, ...problems.map((each) => `${each.text} (${commandOf(each)})`)].join('; '));
  }
  const cures = new Set(problems.map((each) => each.do ?? commandOf(each)));
  return wrong(problems.map(({ text }) => text).join('; '), [...cures].join('; '));
}

function unready({ readiness = {}, engines = [] }: Facts, isWanted: (name: string) => boolean): Problem[] {
  const names = Object.keys(readiness).filter(
    (name) => readiness[name] === false && name !== 'disk' && isWanted(name),
  );
  return names.map((name) => ({
    id: `check-${name}`,
    text: engines.includes(name)
      ? `${name} can not be reached`
      : `this process is not ready: ${name} does not hold`,
    words: ['doctor'],
  }));
}

function switchedOff(disabled: readonly string[]): Problem[] {
  const [first] = disabled;
  if (first === undefined) return [];
  if (disabled.length > MAX_ONE_BY_ONE) {
    const text = `${disabled.length} webhooks are switched off: nothing is sent to ${some(disabled)}`;
    return [{ id: 'disabled', text, words: ['webhook', 'show', first], href: '/webhooks?state=disabled' }];
  }
  return disabled.map((prefix) => ({
    id: `disabled-${prefix}`,
    text: `the webhook of key ${prefix} is switched off: nothing is sent to it`,
    words: ['webhook', 'show', prefix],
    href: `/webhooks/${prefix}`,
  }));
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
  const href = isOne ? `/webhooks/${prefix}` : '/webhooks?state=failing';
  return [{ id: 'failing', text, words: ['webhook', 'test', prefix], href }];
}
