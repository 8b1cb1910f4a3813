import { type RowOf, type StorePlan, tablePlan } from '../../tables/plan.ts';
import { removeRows } from '../../tables/remove-rows.ts';
import { drop, put, type Tables } from '../../tables/tables.ts';
import {
  type Coordination,
  type FollowerCheckpoint,
  type LiveProcess,
  PROCESS_MAX_AGE_MS,
} from './coordination.ts';
import { mayBeAlive } from './may-be-alive.ts';

/** Times are those of the store's clock. `lasts` is the number of milliseconds for which the lease was granted. */
const LEASES = tablePlan({
  name: 'leases',
  key: 'name',
  columns: { name: 'text', holder: 'text', expires_at: 'time', lasts: 'integer' },
  indexes: {},
});
/** `anchor` is JSON. */
const CHECKPOINTS = tablePlan({
  name: 'checkpoints',
  key: 'follower',
  columns: { follower: 'text', store_id: 'text', position: 'integer', anchor: 'text?' },
  indexes: {},
});
const PROCESSES = tablePlan({
  name: 'live_processes',
  key: 'id',
  columns: {
    id: 'text',
    pid: 'integer',
    host: 'text',
    roles: 'text',
    started_at: 'time',
    seen_at: 'time',
    ready: 'integer', // 1 once it is
  },
  indexes: { by_seen: ['seen_at'] },
});
export const CONTROL_STORE: StorePlan = {
  name: 'control',
  version: 2,
  tables: [LEASES, CHECKPOINTS, PROCESSES],
  durability: 'normal',
  withinMs: 2_000, // leases last for seconds: a later answer would be useless
};

/** The end of a lease that lasts until it is released: the last moment that a `Date` can represent. */
const FOREVER_MS = 8_640_000_000_000_000;
/** The clock of another server may be this far behind after a failover. */
const CLOCK_SKEW_MS = 1_000;
/** Processes that ended without calling `removeProcess` are forgotten after a day. */
const FORGOTTEN_AFTER_MS = 86_400_000;
const MAX_PROCESSES = 1_000;
/** A try fails only if another process has changed the lease since it was read. */
const MAX_TRIES = 20;

type LeaseRow = RowOf<typeof LEASES>;
type ProcessRow = RowOf<typeof PROCESSES>;

/**
 * Keeps leases, checkpoints and live processes in tables. Only `tables.now` counts; the clocks of processes may differ.
 */
export function openCoordination(tables: Tables): Coordination {
  let hasForgotten = false;
  /** The leases that were granted here, as they were written: a renewal replaces them without reading them first. */
  const granted = new Map<string, LeaseRow>();
  const read = async (lease: string) => {
    const [[found], nowMs] = await Promise.all([tables.get(LEASES, [lease]), tables.now()]);
    return { found, nowMs };
  };
  /** True if nobody has the lease any more. */
  const isOver = async (lease: LeaseRow, nowMs: number): Promise<boolean> => {
    if (!isRunning(lease, nowMs)) return true;
    const [holder] = await tables.get(PROCESSES, [lease.holder]);
    return holder !== undefined && hasEnded(holder, nowMs);
  };
  return {
    async acquire(lease, holder, ttlMs) {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const own = granted.get(lease);
        granted.delete(lease); // one that was taken away meanwhile is read at the next try
        const isOwn = own?.holder === holder;
        const { found, nowMs } = isOwn ? { found: own, nowMs: await tables.now() } : await read(lease);
        if (found !== undefined && found.holder !== holder && !(await isOver(found, nowMs))) return false;
        const row = leaseFor({ name: lease, holder }, nowMs, ttlMs);
        const [isTaken] = await tables.write([
          put(LEASES, row, found === undefined ? 'missing' : { as: found }),
        ]);
        if (!isTaken) continue;
        granted.set(lease, row);
        return true;
      }
      return false;
    },
    async release(lease, holder) {
      granted.delete(lease);
      await tables.write([drop(LEASES, lease, { as: { holder } })]);
    },
    async holder(lease) {
      const { found, nowMs } = await read(lease);
      if (found === undefined || (await isOver(found, nowMs))) return undefined;
      return { holder: found.holder, expiresAtMs: found.expires_at };
    },
    async checkpoint(follower) {
      const [found] = await tables.get(CHECKPOINTS, [follower]);
      return found && toCheckpoint(found);
    },
    async moveCheckpoint(follower, { storeId, position, anchor }) {
      const row = { follower, store_id: storeId, position };
      await tables.write([put(CHECKPOINTS, { ...row, anchor: anchor ? JSON.stringify(anchor) : null })]);
    },
    async report(reported) {
      const nowMs = await tables.now();
      await tables.write([put(PROCESSES, toRow(reported, nowMs))]);
      if (hasForgotten) return;
      const forgotten = { index: 'by_seen', range: { to: nowMs - FORGOTTEN_AFTER_MS } } as const;
      await removeRows(tables, PROCESSES, forgotten, MAX_PROCESSES);
      hasForgotten = true;
    },
    async removeProcess(processId) {
      await tables.write([drop(PROCESSES, processId)]);
    },
    async live(maxAgeMs) {
      const nowMs = await tables.now();
      const range = { from: nowMs - maxAgeMs + 1, to: nowMs + maxAgeMs - 1 }; // the clock may have been set since
      const found = await tables.find(PROCESSES, { index: 'by_seen', range, limit: MAX_PROCESSES });
      const inOrder = (a: ProcessRow, b: ProcessRow) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1);
      return found.filter(mayBeAlive).toSorted(inOrder).map(toProcess);
    },
    close: () => tables.close(),
  };
}

function leaseFor(lease: Pick<LeaseRow, 'name' | 'holder'>, nowMs: number, ttlMs: number): LeaseRow {
  return { ...lease, expires_at: Math.min(nowMs + ttlMs, FOREVER_MS), lasts: Math.min(ttlMs, FOREVER_MS) };
}

/**
 * True if the lease has not ended. A lease that would end later than one granted now was written by a clock that was
 * ahead, or before a reboot: it has ended.
 */
function isRunning({ expires_at, lasts }: LeaseRow, nowMs: number): boolean {
  return expires_at === FOREVER_MS || (expires_at > nowMs && expires_at <= nowMs + lasts + CLOCK_SKEW_MS);
}

/**
 * True if the holder is a process of this machine that has ended. A process that still reports lives in another
 * container, where process ids differ.
 */
function hasEnded(reported: ProcessRow, nowMs: number): boolean {
  return Math.abs(nowMs - reported.seen_at) >= PROCESS_MAX_AGE_MS && !mayBeAlive(reported);
}

function toCheckpoint({ store_id, position, anchor }: RowOf<typeof CHECKPOINTS>): FollowerCheckpoint {
  return {
    storeId: store_id,
    position,
    anchor: anchor === null ? undefined : (JSON.parse(anchor) as FollowerCheckpoint['anchor']),
  };
}

function toRow({ id, pid, host, roles, ...process }: LiveProcess, nowMs: number): ProcessRow {
  return {
    id,
    pid,
    host,
    roles: JSON.stringify(roles),
    started_at: process.startedAtMs,
    seen_at: nowMs,
    ready: process.isReady ? 1 : 0,
  };
}

function toProcess({ id, pid, host, roles, ...row }: ProcessRow): LiveProcess {
  return {
    id,
    pid,
    host,
    roles: JSON.parse(roles) as string[],
    startedAtMs: row.started_at,
    seenAtMs: row.seen_at,
    isReady: row.ready === 1,
  };
}
