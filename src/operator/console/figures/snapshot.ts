import { type LiveProcess, PROCESS_MAX_AGE_MS } from '../../../base/coordination/coordination.ts';
import type { DiskState } from '../../../base/disk/disk.ts';
import type { Damage } from '../../../event-store/event-store.ts';
import type { LaneStreak } from '../../../push/queue/delivery-queue.ts';
import { type FollowerStatus, followerStatus } from '../../../service/ops/followers.ts';
import type { Readiness } from '../../../service/ops/ops-server.ts';
import { MAX_BACKLOG_COUNTED } from '../../../service/ops/shared-figures.ts';
import { MAX_FAILING } from '../../checks/accounts.ts';
import { AccountIndex, type AccountLists } from './account-index.ts';
import { Fresh, type Known, known } from './known.ts';
import type { ConsoleParts } from './parts.ts';
import { type Operation, OperationsTail } from './tails.ts';

/** However many look, the stores are asked this often. */
const MAX_AGE_MS = 2_000;
const CERTIFICATE_MAX_AGE_MS = 60_000;
/** All events are read for it. */
const DAMAGE_MAX_AGE_MS = 10_000;

export interface BacklogFigures {
  /** Each is counted up to `MAX_BACKLOG_COUNTED`. */
  readonly pending: number;
  readonly held: number;
  readonly failing: number;
  readonly oldestDueAtMs: number | undefined;
}

/** The state of the whole service, each part with when it was read. */
export interface Snapshot extends Figures {
  readonly atMs: number;
}

interface Figures {
  readonly followers: Known<readonly FollowerStatus[]>;
  readonly backlog: Known<BacklogFigures>;
  /** Webhooks with a failure streak, the longest first, at most `MAX_FAILING`. */
  readonly failing: Known<readonly LaneStreak[]>;
  readonly processes: Known<readonly LiveProcess[]>;
  readonly readiness: Known<Readiness>;
  readonly operations: Known<readonly Operation[]>;
  readonly certificateEndsAtMs: Known<number | undefined>;
  readonly disk: Known<DiskState | undefined>;
  readonly lists: Known<AccountLists>;
  readonly damage: Known<readonly Damage[]>;
}

/** One snapshot for everybody who looks, of which each part is read only while somebody does. */
export class Snapshots {
  readonly accounts: AccountIndex;
  readonly #now: () => number;
  readonly #read: { readonly [Name in keyof Figures]: () => Promise<Figures[Name]> };

  constructor(parts: ConsoleParts) {
    const { queue, coordination, readiness, certificateEndsAtMs, disk, clock } = parts;
    const now = (): number => clock.now();
    const fresh = <T>(read: () => Promise<T>, maxAgeMs = MAX_AGE_MS): (() => Promise<Known<T>>) => {
      const held = new Fresh(() => known(read, now), { maxAgeMs, now });
      return () => held.get();
    };
    const tail = new OperationsTail(parts.store);
    this.accounts = new AccountIndex(parts);
    this.#now = now;
    this.#read = {
      followers: fresh(() => followerStatus(parts, { glance: true })),
      backlog: fresh(() => readBacklog(parts)),
      failing: fresh(() => queue.failingLanes(MAX_FAILING)),
      processes: fresh(() => coordination.live(PROCESS_MAX_AGE_MS)),
      readiness: fresh(async () => readiness()),
      operations: fresh(() => tail.read()),
      certificateEndsAtMs: fresh(certificateEndsAtMs, CERTIFICATE_MAX_AGE_MS),
      disk: fresh(disk),
      lists: () => this.accounts.listsSoon(),
      damage: fresh(parts.damage, DAMAGE_MAX_AGE_MS),
    };
  }

  async get(): Promise<Snapshot> {
    const reads = Object.entries(this.#read).map(async ([name, read]) => [name, await read()] as const);
    const figures = Object.fromEntries(await Promise.all(reads)) as unknown as Figures;
    return { ...figures, atMs: this.#now() };
  }
}

async function readBacklog({ queue }: Pick<ConsoleParts, 'queue'>): Promise<BacklogFigures> {
  const { pending, held, failingLanes, nextDueAtMs } = await queue.backlog(MAX_BACKLOG_COUNTED);
  return { pending, held, failing: failingLanes, oldestDueAtMs: nextDueAtMs };
}
