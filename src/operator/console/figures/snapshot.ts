import { PROCESS_MAX_AGE_MS } from '../../../base/coordination/coordination.ts';
import { MAX_BACKLOG_COUNTED } from '../../../service/ops/shared-figures.ts';
import { type FollowerStatus, followerStatus } from '../../answers/follower.ts';
import { MAX_FAILING } from '../../checks/accounts.ts';
import { AccountIndex } from './account-index.ts';
import { Fresh, type Known, known } from './known.ts';
import type { ConsoleParts } from './parts.ts';
import { OperationsTail } from './tails.ts';

/** However many look, the stores are asked this often. */
const MAX_AGE_MS = 2_000;
const CERTIFICATE_MAX_AGE_MS = 60_000;
/** All events are read for it. */
const DAMAGE_MAX_AGE_MS = 10_000;

/** The state of the whole service, each part with when it was read. */
export type Snapshot = { readonly atMs: number } & {
  readonly [Name in keyof Figures]: Awaited<ReturnType<Figures[Name]>>;
};
type Figures = ReturnType<typeof figuresOf>;

/** One snapshot for everybody who looks, of which each part is read only while somebody does. */
export class Snapshots {
  readonly accounts: AccountIndex;
  readonly #now: () => number;
  readonly #figures: Figures;

  constructor(parts: ConsoleParts) {
    this.accounts = new AccountIndex(parts);
    this.#now = () => parts.clock.now();
    this.#figures = figuresOf(parts, this.accounts);
  }

  async get(): Promise<Snapshot> {
    const reads = Object.entries(this.#figures).map(async ([name, read]) => [name, await read()] as const);
    const figures = Object.fromEntries(await Promise.all(reads)) as Omit<Snapshot, 'atMs'>;
    return { ...figures, atMs: this.#now() };
  }
}

function figuresOf(parts: ConsoleParts, accounts: AccountIndex) {
  const { queue, coordination, readiness, certificateEndsAtMs, disk, damage, clock } = parts;
  const now = (): number => clock.now();
  const fresh = <T>(read: () => Promise<T>, maxAgeMs = MAX_AGE_MS): (() => Promise<Known<T>>) => {
    const held = new Fresh(() => known(read, now), { maxAgeMs, now });
    return () => held.get();
  };
  const tail = new OperationsTail(parts.store);
  return {
    followers: fresh<readonly FollowerStatus[]>(() => followerStatus(parts, { glance: true })),
    backlog: fresh(() => queue.backlog(MAX_BACKLOG_COUNTED)),
    /** Webhooks with a failure streak, the longest first, at most `MAX_FAILING`. */
    failing: fresh(() => queue.failingLanes(MAX_FAILING)),
    processes: fresh(() => coordination.live(PROCESS_MAX_AGE_MS)),
    readiness: fresh(async () => readiness()),
    operations: fresh(() => tail.read()),
    certificateEndsAtMs: fresh(certificateEndsAtMs, CERTIFICATE_MAX_AGE_MS),
    disk: fresh(disk),
    lists: () => accounts.listsSoon(),
    damage: fresh(damage, DAMAGE_MAX_AGE_MS),
  };
}
