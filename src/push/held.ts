import { readKeys, type StoredKey } from '../accounts/rows/read-rows.ts';
import { accessOf } from '../domain/account.ts';
import type { Tables } from '../tables/tables.ts';
import { DELIVERY_STATES, type DeliveryState, type DeliverySummary } from './queue/delivery.ts';
import type { Backlog, DeliveryFilter, DeliveryReads, PendingLane } from './queue/delivery-queue.ts';

/**
 * A pending delivery is held while its account has no access. That is not stored: it follows from the account's rows at the
 * moment of asking.
 */
export type ShownState = DeliveryState | 'held';
export const SHOWN_STATES: readonly ShownState[] = ['pending', 'held', ...DELIVERY_STATES.slice(1)];

/** A delivery as people see it. */
export type Shown<T extends DeliverySummary = DeliverySummary> = Omit<T, 'state'> & {
  readonly state: ShownState;
};

export interface ShownFilter extends Omit<DeliveryFilter, 'state' | 'lanes'> {
  readonly state?: ShownState | undefined;
}

export interface HeldParts {
  readonly queue: Pick<DeliveryReads, 'pendingLanes' | 'countIn' | 'backlog'>;
  /** The rows of accounts. */
  readonly rows: Pick<Tables, 'get'>;
  readonly nowMs: number;
}

/** The backlog of lanes whose accounts have access, and how many deliveries of others are held. */
export interface ShownBacklog extends Backlog {
  readonly held: number;
}

/** Keys in one read. */
const MAX_READ = 250;

export function hasAccess({ access, unreadable }: StoredKey, nowMs: number): boolean {
  return unreadable === null && accessOf(access, nowMs).open;
}

/** Returns the lanes with pending deliveries by whether their accounts have access. Those of unknown keys count as if they had. */
async function pendingLanes({ queue, rows, nowMs }: HeldParts, prefix?: string) {
  const lanes = await queue.pendingLanes(prefix === undefined ? undefined : [prefix]);
  const [open, held]: [PendingLane[], PendingLane[]] = [[], []];
  for (let from = 0; from < lanes.length; from += MAX_READ) {
    const some = lanes.slice(from, from + MAX_READ);
    const keys = await readKeys(
      rows,
      some.map((lane) => lane.prefix),
    );
    for (const lane of some) {
      const key = keys.get(lane.prefix);
      (key === undefined || hasAccess(key, nowMs) ? open : held).push(lane);
    }
  }
  return { open, held };
}

/** Returns the filter of stored deliveries for a filter by the state that people see. */
export async function storedFilter(
  { state, ...filter }: ShownFilter,
  parts: HeldParts,
): Promise<DeliveryFilter> {
  if (state !== 'held' && state !== 'pending') return { ...filter, state };
  const { held } = await pendingLanes(parts, filter.prefix);
  const prefixes = new Set(held.map(({ prefix }) => prefix));
  return { ...filter, state: 'pending', lanes: { prefixes, areExcluded: state === 'pending' } };
}

/** Returns the open work of all lanes, or of one. Like `backlog` it counts up to a limit. */
export async function shownBacklog(
  parts: HeldParts,
  { limit, prefix }: { readonly limit: number; readonly prefix?: string },
): Promise<ShownBacklog> {
  const { queue, nowMs } = parts;
  const lanes = await pendingLanes(parts, prefix);
  const held = { pending: 0, waiting: 0 };
  for (let from = 0; from < lanes.held.length && held.pending < limit; from += MAX_READ) {
    const prefixes = lanes.held.slice(from, from + MAX_READ).map((lane) => lane.prefix);
    const counted = await queue.countIn(prefixes, { nowMs, limit: limit - held.pending });
    held.pending += counted.pending;
    held.waiting += counted.waiting;
  }
  const all = await queue.backlog({ nowMs, limit: limit + held.pending, prefix });
  return {
    ...all,
    held: held.pending,
    pending: Math.max(0, all.pending - held.pending),
    waiting: Math.max(0, all.waiting - held.waiting),
    nextDueAtMs: lanes.open.reduce<number | undefined>(
      (first, { dueAtMs }) => Math.min(first ?? dueAtMs, dueAtMs),
      undefined,
    ),
  };
}
