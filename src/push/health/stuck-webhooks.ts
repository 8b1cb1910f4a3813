import { keyIneligibleReason } from '../../../projections/deliveries.ts';
import { readKeys, type StoredKey } from '../../accounts/rows/read-rows.ts';
import type { Clock } from '../../base/clock.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { Tables } from '../../tables/tables.ts';
import { hasAccess } from '../held.ts';
import type { DeliveryReads, DueLane, LanePlace } from '../queue/delivery-queue.ts';

/** A webhook that stays without an attempt for longer is a fault of this service. */
export const MAX_STUCK_MS = 5 * 60_000;
/** The most due deliveries of one look, and the most other lanes. */
const MAX_LOOKED_AT = 500;
/** A webhook is unlikely to wait for its receiver before this time, so its attempts need not be read. */
const MIN_HELD_MS = 30_000;

interface StuckWebhooksOptions {
  readonly queue: Pick<DeliveryReads, 'dueLanes' | 'askedToWaitUntil'>;
  /** The rows of accounts. */
  readonly rows: Pick<Tables, 'get'>;
  readonly environment: Environment;
  readonly clock: Clock;
}

/** A webhook that may be sent to now, and has a due delivery that nobody attempts. */
export interface StuckWebhook {
  readonly prefix: string;
  /** Since when. A wait that its receiver asked for does not count. */
  readonly sinceMs: number;
  /** False until a second look has found the same delivery: it may be the next one of a backlog that is sent all the time. */
  readonly isCertain: boolean;
}

type Seen = DueLane & StuckWebhook;

/**
 * Finds webhooks that may be sent to and are not. The oldest due delivery of a webhook is always attempted next, so a
 * webhook whose oldest one stays the same between two looks has had no attempt, whatever happens to the others.
 */
export class StuckWebhooks {
  readonly #options: StuckWebhooksOptions;
  #seen: ReadonlyMap<string, Seen> = new Map();
  #place: LanePlace | undefined;

  constructor(options: StuckWebhooksOptions) {
    this.#options = options;
  }

  /** Returns the webhooks with a due delivery, the one that waits longest first. Rejects as the stores do. */
  async look(): Promise<readonly StuckWebhook[]> {
    const { queue, clock } = this.#options;
    const nowMs = clock.now();
    const before = this.#seen;
    const prefixes = [...before.values()].filter(({ isCertain }) => isCertain).map(({ prefix }) => prefix);
    const options = { nowMs, limit: MAX_LOOKED_AT, after: this.#place };
    const { lanes, isAll, next } = await queue.dueLanes({
      ...options,
      prefixes: prefixes.slice(0, MAX_LOOKED_AT),
    });
    const keys = await readKeys(
      this.#options.rows,
      lanes.map(({ prefix }) => prefix),
    );
    const looked: Seen[] = [];
    for (const lane of lanes)
      if (this.#maySend(keys.get(lane.prefix), nowMs))
        looked.push(await this.#judge(lane, before.get(lane.prefix), nowMs));
    this.#seen = new Map([
      ...(isAll ? [] : before), // some lanes were not looked at
      ...looked.map((each) => [each.prefix, each] as const),
    ]);
    this.#place = next;
    return looked.sort((a, b) => a.sinceMs - b.sinceMs);
  }

  async #judge(lane: DueLane, last: Seen | undefined, nowMs: number): Promise<Seen> {
    if (last === undefined) return { ...lane, sinceMs: lane.dueAtMs, isCertain: false };
    const isSame = last.transactionId === lane.transactionId && last.dueAtMs === lane.dueAtMs;
    if (!isSame) return { ...lane, sinceMs: nowMs, isCertain: false };
    const isLong = nowMs - last.sinceMs > MIN_HELD_MS;
    const askedMs = isLong ? await this.#options.queue.askedToWaitUntil(lane.prefix, nowMs) : undefined;
    return { ...lane, sinceMs: Math.max(last.sinceMs, askedMs ?? 0), isCertain: true };
  }

  #maySend(key: StoredKey | undefined, nowMs: number): boolean {
    if (key === undefined || !hasAccess(key, nowMs)) return false;
    return keyIneligibleReason(key.key, this.#options.environment) === undefined;
  }
}
