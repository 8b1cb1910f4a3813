import { MAKE_SPACE } from '../../../base/disk/disk.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import type { LaneStreak } from '../../../push/queue/delivery-queue.ts';
import { EVENT_STORE } from '../../../service/engines/engine-health.ts';
import { type FollowerStatus, isIdle, MAX_LAG_SECONDS, roleOf } from '../../../service/ops/followers.ts';
import type { Known } from './known.ts';
import type { ConsoleParts } from './parts.ts';
import { MAX_FAILING, type Snapshot } from './snapshot.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** As long as an operator has to renew it. */
const CERTIFICATE_MS = 14 * DAY_MS;
/** Two nights. */
const REPAIRED_WITHIN_MS = 2 * DAY_MS;
const MAX_OVERDUE_MS = 5 * 60_000;

/** Something that an operator should look at. */
export interface Attention {
  /** `bad` does not end before somebody acts. */
  readonly level: 'bad' | 'warn';
  /** The same for the same thing in every refresh. */
  readonly id: string;
  readonly text: string;
  /** The page that says more. */
  readonly href: string;
  /** The words of a command after `fuel`. */
  readonly words?: readonly string[];
}

/** What is so while a store takes nothing or does not answer: the cause alone is worth a line. */
const CAUSES = ['disk', `check-${EVENT_STORE}`, 'check-mongodb'];
const CONSEQUENCE =
  /^(follower-.*-(idle|lag)|check-(known_to_others|event_store_heard|subscription_connected|api_threads_ready)|overdue)$/;

/** What needs attention, the worst first; empty where all is well. */
export function attentionOf(
  snapshot: Snapshot,
  parts: Pick<ConsoleParts, 'directory'>,
): readonly Attention[] {
  const found = [
    ...ofDisk(snapshot),
    ...ofReadiness(snapshot),
    ...ofDamage(snapshot),
    ...ofFollowers(snapshot),
    ...ofWebhooks(snapshot, parts),
    ...ofAccounts(valueIn(snapshot.lists)?.closed ?? []),
    ...ofBacklog(snapshot),
    ...ofCertificate(snapshot),
    ...ofRepairs(snapshot),
    ...ofUnknown(snapshot),
  ];
  const hasCause = found.some(({ level, id }) => level === 'bad' && CAUSES.includes(id));
  const shown = hasCause ? found.filter(({ id }) => !CONSEQUENCE.test(id)) : found;
  return [...shown.filter(({ level }) => level === 'bad'), ...shown.filter(({ level }) => level === 'warn')];
}

/** Webhooks that fail and are not switched off, the longest streak first. */
export function failingWebhooks(
  failing: readonly LaneStreak[],
  { directory }: Pick<ConsoleParts, 'directory'>,
): readonly LaneStreak[] {
  return failing.filter(({ prefix }) => {
    const key = directory.key(prefix)?.key;
    return key?.active === true && key.webhook !== null && key.webhook.disabled === null;
  });
}

function valueIn<T>(found: Known<T>): T | undefined {
  return 'unknown' in found ? undefined : found.value;
}

function ofDisk({ disk }: Snapshot): Attention[] {
  const { refusal, isLow = false, text = '' } = valueIn(disk) ?? {};
  if (refusal === undefined && !isLow) return [];
  const level = refusal === undefined ? 'warn' : 'bad';
  return [
    { level, id: 'disk', text: `${refusal ?? text}: ${MAKE_SPACE}`, href: '/projections', words: ['doctor'] },
  ];
}

function ofReadiness({ readiness }: Snapshot): Attention[] {
  const checks = Object.entries(valueIn(readiness)?.checks ?? {});
  return checks
    .filter(([name, holds]) => !holds && name !== 'disk')
    .map(([name]) => {
      const isEngine = name === EVENT_STORE || name === 'mongodb';
      return {
        level: 'bad',
        id: `check-${name}`,
        text: isEngine ? `${name} can not be reached` : `this process is not ready: ${name} does not hold`,
        href: '/projections',
        words: ['doctor'],
      };
    });
}

function ofDamage({ damage }: Snapshot): Attention[] {
  const [first, ...others] = valueIn(damage) ?? [];
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const text = `damaged: ${describeDamage(first)}${more}: ${RESTORE_EVENTS}`;
  return [{ level: 'bad', id: 'damage', text, href: '/projections', words: ['verify'] }];
}

function ofFollowers({ followers, lists }: Snapshot): Attention[] {
  const webhooks = valueIn(lists)?.webhooks.length ?? 0;
  return (valueIn(followers) ?? []).flatMap((follower) => ofFollower(follower, webhooks));
}

function ofFollower(follower: FollowerStatus, webhooks: number): Attention[] {
  const { name, lag_seconds: lag, parked, unfinished_rebuild_percent: unfinished } = follower;
  const [href, id] = ['/projections', `follower-${name}`];
  const found: Attention[] = [];
  if (isIdle(follower, { webhooks })) {
    const words = ['serve', '--role', roleOf(name)];
    found.push({ level: 'bad', id: `${id}-idle`, text: `no live process works on ${name}`, href, words });
  }
  if (lag > MAX_LAG_SECONDS) {
    const text = `${name} is ${Math.round(lag)} s behind the events`;
    found.push({ level: 'bad', id: `${id}-lag`, text, href, words: ['projection', 'status'] });
  }
  if (parked > 0) {
    const of = name === VIEW_NAME ? [] : ['--follower', name];
    const text =
      parked === 1
        ? `an event of ${name} is parked, and left out until it is retried`
        : `${parked} events of ${name} are parked, and left out until they are retried`;
    found.push({ level: 'bad', id: `${id}-parked`, text, href, words: ['projection', 'parked', ...of] });
  }
  if (unfinished !== undefined) {
    const text = `a rebuild of ${name} stopped at ${unfinished} %`;
    const words = ['projection', 'rebuild', name];
    found.push({ level: 'warn', id: `${id}-rebuild`, text, href, words });
  }
  return found;
}

function ofWebhooks({ lists, failing }: Snapshot, parts: Pick<ConsoleParts, 'directory'>): Attention[] {
  const found: Attention[] = [];
  const disabled = valueIn(lists)?.disabled ?? [];
  const [off] = disabled;
  if (off !== undefined) {
    const what =
      disabled.length === 1 ? `the webhook of key ${off.prefix} is` : `${disabled.length} webhooks are`;
    found.push({
      level: 'warn', // the customer's to repair
      id: 'disabled',
      text: `${what} switched off: nothing is sent to ${disabled.length === 1 ? 'it' : 'them'}`,
      href: disabled.length === 1 ? `/webhooks/${off.prefix}` : '/webhooks?state=disabled',
      words: ['webhook', 'show', off.prefix],
    });
  }
  const fails = failingWebhooks(valueIn(failing) ?? [], parts);
  const [worst] = fails;
  if (worst !== undefined) {
    const { prefix, failedInARow, lastAnswers } = worst;
    const many = fails.length >= MAX_FAILING ? `${MAX_FAILING} or more` : fails.length;
    const streak = `${failedInARow} in a row, the last answer ${lastAnswers[0] ?? 'unknown'}`;
    found.push({
      level: 'warn',
      id: 'failing',
      text:
        fails.length === 1
          ? `deliveries to key ${prefix} fail: ${streak}`
          : `deliveries to ${many} webhooks fail; the longest streak is of key ${prefix}: ${streak}`,
      href: fails.length === 1 ? `/webhooks/${prefix}` : '/webhooks?state=failing',
      words: ['webhook', 'test', prefix],
    });
  }
  return found;
}

function ofAccounts(closed: readonly number[]): Attention[] {
  const [first] = closed;
  if (first === undefined) return [];
  const text =
    closed.length === 1
      ? `account ${first} is closed: an event of it can not be read`
      : `${closed.length} accounts are closed, since an event of each can not be read; the first is ${first}`;
  const words = ['account', 'show', String(first)];
  return [{ level: 'bad', id: 'closed', text, href: `/accounts/${first}`, words }];
}

function ofBacklog({ backlog, atMs }: Snapshot): Attention[] {
  const dueAtMs = valueIn(backlog)?.oldestDueAtMs;
  if (dueAtMs === undefined || atMs - dueAtMs <= MAX_OVERDUE_MS) return [];
  return [
    {
      level: 'warn',
      id: 'overdue',
      text: `deliveries wait: the first of them has been due since ${formatDateTime(dueAtMs)}`,
      href: '/deliveries?state=pending',
      words: ['delivery', 'list', '--state', 'pending'],
    },
  ];
}

function ofCertificate({ certificateEndsAtMs, atMs }: Snapshot): Attention[] {
  const endsAtMs = valueIn(certificateEndsAtMs);
  if (endsAtMs === undefined || endsAtMs - atMs > CERTIFICATE_MS) return [];
  const [level, ends] = endsAtMs <= atMs ? (['bad', 'ended'] as const) : (['warn', 'ends'] as const);
  const text = `the certificate of the pull API ${ends} at ${formatDateTime(endsAtMs)}`;
  return [{ level, id: 'certificate', text, href: '/', words: ['doctor'] }];
}

function ofRepairs({ operations, atMs }: Snapshot): Attention[] {
  return (valueIn(operations) ?? [])
    .filter(
      (operation) => operation.type === 'AgreementRepaired' && atMs - operation.atMs < REPAIRED_WITHIN_MS,
    )
    .map((operation, at) => ({
      level: 'warn' as const,
      id: `repair-${at}`,
      text: `${operation.data.repaired} of ${operation.data.what} differed from the events and were repaired at ${formatDateTime(operation.atMs)}`,
      href: '/projections',
      words: ['verify', '--explain'],
    }));
}

/** What can't be read may hide anything. */
function ofUnknown(snapshot: Snapshot): Attention[] {
  const {
    followers,
    backlog,
    failing,
    processes,
    readiness,
    operations,
    certificateEndsAtMs,
    lists,
    damage,
    disk,
  } = snapshot;
  const read: Record<string, Known<unknown>> = {
    followers,
    'the backlog of deliveries': backlog,
    'failing webhooks': failing,
    processes,
    readiness,
    repairs: operations,
    'the certificate': certificateEndsAtMs,
    'the disk': disk,
    'webhooks that are switched off, and closed accounts': lists,
    'damaged events': damage,
  };
  return Object.entries(read).flatMap(([what, found]) =>
    'unknown' in found
      ? [
          {
            level: 'warn' as const,
            id: `unknown-${what}`,
            text: `not known: ${what} (${found.unknown})`,
            href: '/',
            words: ['doctor'],
          },
        ]
      : [],
  );
}
