import { LRUCache } from 'lru-cache';
import { keyIneligibleReason } from '../../../projections/deliveries.ts';
import { readKeys, type StoredKey } from '../../accounts/rows/read-rows.ts';
import { KEYS } from '../../accounts/rows/tables.ts';
import type { Clock } from '../../base/clock.ts';
import { isUnavailable, reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { world } from '../../base/world.ts';
import { accessOf } from '../../domain/account.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Tables } from '../../tables/tables.ts';
import type { NewDelivery } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';

/** Lanes that are remembered. Others are read again when they have something due. */
const MAX_REMEMBERED = 100_000;
/** Keys in one read, which takes about a millisecond of the event loop. */
const MAX_READ = 250;
/** A lane is read again after this time, for what a notification or an attempt has not shown. */
const REMEMBERED_MS = 5_000;
/** Changed keys in one look. If there are more, every lane that is not open is read again. */
const MAX_CHANGED = 1_000;
/** A lane whose key could not be read rests for this time. */
const REST_MS = 1_000;

/** The state of a lane's key when it was last read, as far as the choice of attempts depends on it. */
export type LaneState =
  | {
      readonly kind: 'open';
      readonly url: string;
      readonly perSecond: number;
      /** The time at which the webhook was enabled last. */
      readonly enabledAtMs: number | undefined;
      /** The position of the last event that ended its deliveries. */
      readonly endedAt: Position | undefined;
    }
  /** The account has no access, or the key is not known yet. `opensAtMs` is when that may change without an event. */
  | { readonly kind: 'closed'; readonly opensAtMs: number | undefined }
  /** The key or its webhook is off. */
  | {
      readonly kind: 'off';
      readonly end: { readonly position: Position; readonly reason: string } | undefined;
    };

interface Remembered {
  readonly state: LaneState;
  readonly untilMs: number;
}

interface LaneRowsOptions {
  /** The rows of accounts. */
  readonly rows: Pick<Tables, 'get' | 'find'>;
  readonly queue: Pick<DeliveryQueue, 'change'>;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The rows of the keys whose deliveries are sent. An attempt is judged by its key as it is read right before; which attempts are
 * made next is chosen by what was last read, so that a choice among many lanes reads only those that are new to it.
 */
export class LaneRows {
  readonly #options: LaneRowsOptions;
  readonly #states = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });
  /** The remembered lanes that are not open. */
  readonly #shut = new Set<string>();
  /** The position of the newest change of a key that was looked at. */
  #seen: Position | undefined;

  constructor(options: LaneRowsOptions) {
    this.#options = options;
  }

  of(prefix: string): LaneState | undefined {
    return this.#states.get(prefix)?.state;
  }

  /** The time at which one of these lanes that is not open may be open; infinite if all are. */
  nextAtMs(prefixes: readonly string[]): number {
    return prefixes.reduce((next, prefix) => {
      const found = this.#shut.has(prefix) ? this.#states.get(prefix) : undefined;
      return found === undefined ? next : Math.min(next, found.untilMs);
    }, Infinity);
  }

  /** Reads the keys of these lanes that are not remembered. Rejects as the store does. */
  async look(prefixes: readonly string[]): Promise<void> {
    const nowMs = this.#options.clock.now();
    const unknown = prefixes.filter((prefix) => {
      const { untilMs = 0 } = this.#states.get(prefix) ?? {};
      return untilMs <= nowMs || untilMs > nowMs + REMEMBERED_MS; // the clock was set back
    });
    for (let from = 0; from < unknown.length; from += MAX_READ) {
      if (from > 0) await world.nextTurn();
      await this.#read(unknown.slice(from, from + MAX_READ));
    }
  }

  /**
   * Ends what is due in those of these lanes that are off. The event that switched them off has ended it already, except for what
   * was stored later and made from an event before it.
   */
  async endOff(prefixes: readonly string[]): Promise<void> {
    const { queue, clock } = this.#options;
    for (const prefix of prefixes) {
      const state = this.of(prefix);
      if (state?.kind !== 'off') continue;
      const { position: before = 0, reason = '' } = state.end ?? {};
      const ended = await queue.change({ kind: 'end lane', prefix, reason, before }, clock.now());
      if (ended === 0) this.close(prefix);
    }
  }

  /**
   * Ends what was stored just now and made from an event before the last end of its lane, which came while it was on its way. In
   * an open lane its attempt ends it. Rejects as the stores do, and can be repeated.
   */
  async stored(deliveries: readonly Pick<NewDelivery, 'prefix' | 'position'>[]): Promise<void> {
    const { queue, clock } = this.#options;
    const firsts = new Map<string, Position>();
    for (const { prefix, position } of deliveries)
      if (this.#shut.has(prefix)) firsts.set(prefix, Math.min(position, firsts.get(prefix) ?? position));
    if (firsts.size === 0) return;
    for (const [prefix, { ended }] of await this.#read([...firsts.keys()])) {
      if (ended === undefined || ended.position < (firsts.get(prefix) ?? 0)) continue;
      const { position: before, reason } = ended;
      const end = { kind: 'end lane', prefix, reason, before, redelivered: false } as const;
      await queue.change(end, clock.now());
    }
  }

  /** Reads the keys of deliveries right before their attempts. Those that could not be read are missing, and rest for a moment. */
  async read(prefixes: readonly string[]): Promise<ReadonlyMap<string, StoredKey>> {
    const { clock, log } = this.#options;
    try {
      return await this.#read([...new Set(prefixes)]);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      log.warn({ reason: reasonOf(error) }, 'keys cannot be read: their deliveries wait');
      for (const prefix of prefixes)
        this.#remember(prefix, { kind: 'closed', opensAtMs: clock.now() + REST_MS });
      return new Map();
    }
  }

  /** Treats the lane as closed until the row of its key has changed. */
  close(prefix: string): void {
    this.#remember(prefix, { kind: 'closed', opensAtMs: undefined });
  }

  /**
   * Looks for keys that have changed, since some rows have, and forgets the lanes of these that are not open. Returns whether there
   * were any. While the store is unavailable it finds none: lanes are read again after a while in any case.
   */
  async changed(): Promise<boolean> {
    if (this.#shut.size === 0) return false;
    try {
      const changed = await this.#changedKeys();
      const forgotten = [...(changed ?? this.#shut)].filter((prefix) => this.#shut.delete(prefix));
      for (const prefix of forgotten) this.#states.delete(prefix);
      return forgotten.length > 0;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return false;
    }
  }

  /** Returns the keys whose rows have changed since the last look; `undefined` at the first look, and if there are many. */
  async #changedKeys(): Promise<string[] | undefined> {
    const { rows } = this.#options;
    const since = this.#seen;
    const newest = {
      index: 'by_position',
      descending: true,
      limit: since === undefined ? 1 : MAX_CHANGED,
    } as const;
    const range = { from: (since ?? 0) + 1 };
    const found = await rows.find(KEYS, { ...newest, range, columns: ['prefix', 'position'] });
    this.#seen = found[0]?.position ?? since ?? 0;
    return since === undefined || found.length === MAX_CHANGED
      ? undefined
      : found.map(({ prefix }) => prefix);
  }

  async #read(prefixes: readonly string[]): Promise<Map<string, StoredKey>> {
    const keys = await readKeys(this.#options.rows, prefixes);
    for (const prefix of prefixes) this.#remember(prefix, this.#stateOf(keys.get(prefix)));
    return keys;
  }

  #remember(prefix: string, state: LaneState): void {
    const nowMs = this.#options.clock.now();
    const opensAtMs = (state.kind === 'closed' ? state.opensAtMs : undefined) ?? Infinity;
    this.#states.set(prefix, { state, untilMs: Math.min(opensAtMs, nowMs + REMEMBERED_MS) });
    if (state.kind === 'open') this.#shut.delete(prefix);
    else this.#shut.add(prefix);
  }

  #stateOf(found: StoredKey | undefined): LaneState {
    const { environment, clock } = this.#options;
    if (found === undefined || found.unreadable !== null) return { kind: 'closed', opensAtMs: undefined };
    const { key, access: terms, ended, enabledAtMs } = found;
    if (keyIneligibleReason(key, environment) !== undefined || key.webhook === null)
      return { kind: 'off', end: ended };
    const access = accessOf(terms, clock.now());
    if (!access.open) return { kind: 'closed', opensAtMs: access.opensAtMs };
    const { url, ratePerSecond } = key.webhook;
    const perSecond = ratePerSecond ?? Infinity;
    return { kind: 'open', url, perSecond, enabledAtMs, endedAt: ended?.position };
  }
}
