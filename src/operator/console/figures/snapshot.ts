import { PROCESS_MAX_AGE_MS } from '../../../base/coordination/coordination.ts';
import { trustedTime } from '../../../base/time/trusted-clock.ts';
import { MAX_BACKLOG_COUNTED } from '../../../service/ops/shared-figures.ts';
import { type FollowerStatus, followerStatus } from '../../answers/follower.ts';
import { failingWebhooks, MAX_FAILING } from '../../checks/accounts.ts';
import { look, type Problem } from '../../checks/check.ts';
import { problemsIn } from '../../checks/table.ts';
import { accountLists } from './account-lists.ts';
import type { ConsoleParts } from './console-parts.ts';
import { type Known, known, shared } from './known.ts';
import { operationsTail } from './tails.ts';

/** However many look, the stores are asked this often, and less often where that takes long. */
const AGE = { ageMs: 2_000, maxAgeMs: 15_000 };

/** Parts of the state of the service. Each is read for everybody who looks, and only while somebody does. */
export type Figures = ReturnType<typeof figuresOf>;
/** All of them, each with when it was read. */
export type Snapshot = { readonly atMs: number } & {
  readonly [Name in keyof Figures]: Awaited<ReturnType<Figures[Name]>>;
};

export function figuresOf(parts: ConsoleParts) {
  const { queue, coordination, readiness, certificateEndsAtMs, disk, damage, clock, directory } = parts;
  const of = <T>(read: () => Promise<T>, age = AGE): (() => Promise<Known<T>>) =>
    shared(() => known(read, () => clock.now()), age);
  return {
    followers: of<readonly FollowerStatus[]>(() => followerStatus(parts, { glance: true })),
    backlog: of(() => queue.backlog({ nowMs: clock.now(), limit: MAX_BACKLOG_COUNTED })),
    /** The longest streaks first, at most `MAX_FAILING`. */
    failing: of(async () => failingWebhooks(await queue.failingLanes(MAX_FAILING), directory)),
    processes: of(() => coordination.live(PROCESS_MAX_AGE_MS)),
    trustedAtMs: of(() => trustedTime(coordination)),
    readiness: of(readiness),
    operations: of(operationsTail(parts.store)),
    certificateEndsAtMs: of(certificateEndsAtMs),
    disk: of(disk),
    lists: of(accountLists(parts)),
    /** All events are read for it. */
    damage: of(damage, { ...AGE, ageMs: 10_000 }),
  };
}

/** What those are called that are not called as here; where one can't be read, that may hide anything. */
const NAMES: Partial<Record<string, string>> = {
  backlog: 'the backlog of deliveries',
  failing: 'failing webhooks',
  operations: 'repairs',
  certificateEndsAtMs: 'the certificate',
  trustedAtMs: 'the clock',
  disk: 'the disk',
  lists: 'webhooks that are switched off, and unreadable accounts',
  damage: 'damaged events',
};

export async function snapshotOf(figures: Figures, { clock }: Pick<ConsoleParts, 'clock'>) {
  const reads = Object.entries(figures).map(async ([name, read]) => [name, await read()] as const);
  return { ...Object.fromEntries(await Promise.all(reads)), atMs: clock.now() } as Snapshot;
}

/** What needs attention, the worst first; empty where all is well. */
export function attentionOf(snapshot: Snapshot, engineNames: readonly string[]): readonly Problem[] {
  const { lists, operations, atMs } = snapshot;
  const found = problemsIn({
    atMs,
    disk: snapshot.disk.value,
    readiness: snapshot.readiness.value?.checks,
    engines: engineNames,
    damage: snapshot.damage.value,
    followers: snapshot.followers.value,
    unreadable: lists.value?.unreadable,
    webhooks: lists.value?.webhooks.length,
    disabled: lists.value?.disabled.map(({ prefix }) => prefix),
    failing: snapshot.failing.value,
    backlog: snapshot.backlog.value,
    certificateEndsAtMs: snapshot.certificateEndsAtMs.value,
    trustedAtMs: snapshot.trustedAtMs.value,
    repairs: (operations.value ?? [])
      .filter(({ type }) => type === 'AgreementRepaired')
      .map(({ data, atMs }) => ({ atMs, what: `${data.what}`, repaired: `${data.repaired}` })),
  });
  const unknown = Object.entries(snapshot).flatMap(([name, figure]): Problem[] => {
    if (typeof figure === 'number' || !('unknown' in figure)) return [];
    const what = NAMES[name] ?? name;
    return [look(`unknown-${what}`, `not known: ${what} (${figure.unknown})`, ['doctor'], { href: '/' })];
  });
  return [...found, ...unknown];
}
