import { Gauge, type Registry } from 'prom-client';
import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { errorKind } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { aborted, pause } from '../../base/pause.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { LaneReads } from '../../push/queue/delivery-queue.ts';
import { FOLLOWERS, type Follower, type FollowerReads, placeOf, secondsBehind } from './followers.ts';

/** However often they are scraped, the stores are asked this often. */
const READ_EVERY_MS = 15_000;
const MAX_READ_MS = 10_000;
/** A backlog is counted up to this many, which takes a few milliseconds. */
export const MAX_BACKLOG_COUNTED = 10_000;

/** How the help of each of these figures begins: those of several processes must not be added up. */
export const SHARED = 'Shared, the same in every process:';

export interface SharedFigureParts extends FollowerReads {
  readonly queue: Pick<LaneReads, 'backlog'>;
  readonly directory: Pick<Directory, 'counts'>;
  readonly log: Log;
}

export interface Reading {
  readonly atMs: number;
  /** Seconds by follower; one that could not be read is left out. */
  readonly lag: Readonly<Record<string, number>>;
  /** `null` where it could not be read. */
  readonly pending: number | null;
}

/** What the stores hold, as gauges. They are NaN until they are read, and while their engine is unavailable. */
export class SharedFigures {
  /** Gets what was read each time. */
  onReading: (reading: Reading) => void = () => undefined;
  readonly #lag: Gauge<'follower'>;
  readonly #parked: Gauge<'follower'>;
  readonly #position: Gauge;
  readonly #head: Gauge;
  readonly #pending: Gauge;
  readonly #held: Gauge;
  readonly #oldestDue: Gauge;
  readonly #failing: Gauge;
  readonly #disabled: Gauge;
  readonly #unreadable: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    const gauge = (name: string, help: string): Gauge => {
      const made = new Gauge({ name, help: `${SHARED} ${help}`, registers });
      made.set(Number.NaN);
      return made;
    };
    const ofFollowers = (name: string, help: string): Gauge<'follower'> =>
      new Gauge({ name, help: `${SHARED} ${help}`, labelNames: ['follower'], registers });
    this.#lag = ofFollowers(
      'fuel_follower_lag_seconds',
      'age of the first event that a follower has not done (transactions, deliveries, notices).',
    );
    this.#parked = ofFollowers('fuel_follower_parked_events', 'events that a follower parked.');
    this.#head = gauge('fuel_event_store_position', 'where the log of events ends.');
    this.#position = gauge(
      'fuel_view_position',
      'the position up to which the transactions view has applied the log.',
    );
    const counted = `counted up to ${MAX_BACKLOG_COUNTED}`;
    this.#pending = gauge('fuel_deliveries_pending', `deliveries not ended and not held, ${counted}.`);
    this.#held = gauge('fuel_deliveries_held', `deliveries whose account has no access, ${counted}.`);
    this.#oldestDue = gauge('fuel_deliveries_oldest_due_seconds', 'how long a delivery has been due.');
    this.#failing = gauge('fuel_webhooks_failing', `webhooks with a failure streak, ${counted}.`);
    this.#disabled = gauge('fuel_webhooks_disabled', 'webhooks of active keys that are switched off.');
    this.#unreadable = gauge('fuel_accounts_unreadable', 'accounts with an event that can not be read.');
  }

  /** Reads everything about every 15 s until `signal` aborts: a scrape reads nothing. */
  async run(parts: SharedFigureParts, signal: AbortSignal): Promise<void> {
    const ended = aborted(signal);
    while (!signal.aborted) {
      await Promise.race([this.read(parts, signal), ended]);
      await pause(READ_EVERY_MS, signal);
    }
  }

  async read(parts: SharedFigureParts, signal: AbortSignal): Promise<void> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(MAX_READ_MS)]);
    const { log, directory, clock } = parts;
    this.#disabled.set(directory.counts.disabledWebhooks);
    this.#unreadable.set(directory.counts.unreadable);
    const lag: Record<string, number> = {};
    const [pending] = await Promise.all([
      this.#readBacklog(parts).catch(this.#unknown(log, 'backlog')),
      ...FOLLOWERS.map((follower) =>
        this.#readFollower(parts, follower, { signal: until, lag }).catch(this.#unknown(log, follower.name)),
      ),
    ]);
    this.onReading({ atMs: clock.now(), lag, pending: pending ?? null });
  }

  async #readFollower(
    parts: SharedFigureParts,
    { name: follower, prefixes }: Follower,
    { signal, lag }: { readonly signal: AbortSignal; readonly lag: Record<string, number> },
  ): Promise<void> {
    const { position, parked } = await placeOf(parts, { name: follower });
    this.#parked.set({ follower }, parked);
    if (follower === VIEW_NAME) {
      this.#head.set(await parts.store.head());
      this.#position.set(position);
    }
    lag[follower] = await secondsBehind(parts, { prefixes, after: position }, signal);
    this.#lag.set({ follower }, lag[follower]);
  }

  async #readBacklog({ queue, clock }: SharedFigureParts): Promise<number> {
    const { pending, held, failingLanes, nextDueAtMs: dueAtMs } = await queue.backlog(MAX_BACKLOG_COUNTED);
    this.#pending.set(pending);
    this.#held.set(held);
    this.#failing.set(failingLanes);
    this.#oldestDue.set(dueAtMs === undefined ? 0 : Math.max(0, (clock.now() - dueAtMs) / 1000));
    return pending;
  }

  /** What can't be read is no number. Only a fault of the program is worth a line of the log. */
  #unknown(log: Log, what: string): (error: unknown) => undefined {
    return (error) => {
      if (what === 'backlog') {
        for (const gauge of [this.#pending, this.#held, this.#oldestDue, this.#failing])
          gauge.set(Number.NaN);
      } else {
        this.#lag.set({ follower: what }, Number.NaN);
        this.#parked.set({ follower: what }, Number.NaN);
        if (what === VIEW_NAME) for (const gauge of [this.#head, this.#position]) gauge.set(Number.NaN);
      }
      const isTimeout = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name);
      if (!isTimeout && errorKind(error) === 'fault')
        log.error({ err: error, figure: what }, 'a figure of the metrics can not be read');
    };
  }
}
