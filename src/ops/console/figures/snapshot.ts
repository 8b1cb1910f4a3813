import type { LiveProcess } from '../../../coordination/coordination.ts';
import { PROCESS_MAX_AGE_MS } from '../../../coordination/process-report.ts';
import type { LaneStreak } from '../../../deliveries/queue/bounded-reads.ts';
import { type FollowerStatus, followerStatus } from '../../followers.ts';
import type { Readiness } from '../../ops-server.ts';
import { MAX_BACKLOG_COUNTED } from '../../shared-figures.ts';
import { AccountIndex, type AccountLists } from './account-index.ts';
import { Fresh, type Known, known } from './known.ts';
import { type Operation, OperationsTail } from './operations-tail.ts';
import type { ConsoleParts } from './parts.ts';

/** However many look, the stores are asked this often. */
const MAX_AGE_MS = 2_000;
const CERTIFICATE_MAX_AGE_MS = 60_000;
/** A list with more failing webhooks than an operator reads. */
export const MAX_FAILING = 200;

export interface BacklogFigures {
  /** Each is counted up to `MAX_BACKLOG_COUNTED`. */
  readonly pending: number;
  readonly held: number;
  readonly failing: number;
  readonly oldestDueAtMs: number | undefined;
}

/** The state of the whole service at one moment. */
export interface Snapshot {
  readonly atMs: number;
  readonly followers: Known<readonly FollowerStatus[]>;
  readonly backlog: Known<BacklogFigures>;
  /** Webhooks with a failure streak, the longest first, at most `MAX_FAILING`. */
  readonly failing: Known<readonly LaneStreak[]>;
  readonly processes: Known<readonly LiveProcess[]>;
  readonly readiness: Known<Readiness>;
  readonly operations: Known<readonly Operation[]>;
  readonly certificateEndsAtMs: Known<number | undefined>;
  readonly lists: AccountLists;
}

/** One snapshot for everybody who looks, read only while somebody does. */
export class Snapshots {
  readonly accounts: AccountIndex;
  readonly #parts: ConsoleParts;
  readonly #fresh: Fresh<Snapshot>;
  readonly #tail: OperationsTail;
  readonly #certificate: Fresh<number | undefined>;

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    const now = (): number => parts.clock.now();
    this.accounts = new AccountIndex(parts);
    this.#tail = new OperationsTail(parts.store);
    this.#certificate = new Fresh(parts.certificateEndsAtMs, { maxAgeMs: CERTIFICATE_MAX_AGE_MS, now });
    this.#fresh = new Fresh(() => this.#read(), { maxAgeMs: MAX_AGE_MS, now });
  }

  get(): Promise<Snapshot> {
    return this.#fresh.get();
  }

  async #read(): Promise<Snapshot> {
    const { reads, coordination, readiness, clock } = this.#parts;
    const now = (): number => clock.now();
    const [followers, backlog, failing, processes, ready, operations, certificateEndsAtMs, lists] =
      await Promise.all([
        known(() => followerStatus(this.#parts, { glance: true }), now),
        known(() => this.#backlog(), now),
        known(() => reads.failingLanes(MAX_FAILING), now),
        known(() => coordination.live(PROCESS_MAX_AGE_MS), now),
        known(async () => readiness(), now),
        known(() => this.#tail.read(), now),
        known(() => this.#certificate.get(), now),
        this.accounts.lists(),
      ]);
    return {
      atMs: now(),
      followers,
      backlog,
      failing,
      processes,
      readiness: ready,
      operations,
      certificateEndsAtMs,
      lists,
    };
  }

  async #backlog(): Promise<BacklogFigures> {
    const { queue } = this.#parts;
    const [{ pending, held, failingLanes }, oldestDueAtMs] = await Promise.all([
      queue.backlog(MAX_BACKLOG_COUNTED),
      queue.nextDueAtMs(),
    ]);
    return { pending, held, failing: failingLanes, oldestDueAtMs };
  }
}
