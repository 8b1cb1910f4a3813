import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import type { RowsFreshness } from '../../accounts/rows/freshness.ts';
import { steadyClock } from '../../base/clock.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import { isUnavailable } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { EngineHealth } from '../engines/engine-health.ts';
import type { Readiness } from './ops-server.ts';

/**
 * The facts besides its directory that a process needs to judge access: until when (in milliseconds since the boot)
 * other processes count it as alive, which position its directory must reach, and whether it is stopping.
 */
export class Standing {
  #knownUntilMs = 0;
  #mustReach: Position | undefined;
  #isStopping = false;
  #joins = 0;
  #hasFailedToJoin = false;

  knownUntil(ms: number): void {
    this.#knownUntilMs = ms;
  }

  isKnown(nowMs: number): boolean {
    return nowMs < this.#knownUntilMs;
  }

  /** True if the next report must be followed by `join`: the others forgot this process, or it failed to join them. */
  mustJoin(nowMs: number): boolean {
    return !this.isKnown(nowMs) || this.#hasFailedToJoin;
  }

  /**
   * Called when the other processes know of this one. A command with `--wait` waits for all processes that have
   * reported recently. It does not wait for one that could not report because the coordination store was unavailable,
   * so a key may have been switched off in that time. Therefore, at its start and after such a time, a process first
   * reports itself, and then applies everything that was recorded before it judges access.
   */
  join(store: Pick<EventStore, 'head'>, options: { readonly log: Log; readonly signal: AbortSignal }): void {
    this.#joins += 1;
    const join = this.#joins;
    this.#hasFailedToJoin = false;
    this.mustReach(undefined);
    retryWhileUnavailable(() => store.head(), { ...options, component: 'membership' })
      .then((end) => {
        if (join === this.#joins) this.mustReach(end);
      })
      .catch((error: unknown) => {
        if (options.signal.aborted || join !== this.#joins) return;
        this.#hasFailedToJoin = true;
        options.log.error(
          { err: error },
          'the end of the log cannot be read: no request is served; retrying after the next report',
        );
      });
  }

  /** True if a directory at this position has applied everything that it must. */
  hasReached(position: Position): boolean {
    return this.#mustReach !== undefined && position >= this.#mustReach;
  }

  stopping(): void {
    this.#isStopping = true;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Sets the position that the directory must reach; `undefined` if it is not known yet. */
  mustReach(position: Position | undefined): void {
    this.#mustReach = position;
  }
}

/** True if a condition holds, otherwise what is missing. */
type Condition = true | string;

export interface AccessConditions {
  readonly live: Pick<LiveDirectory, 'isCaughtUp' | 'silenceMs'> & {
    readonly directory: Pick<Directory, 'position'>;
  };
  readonly maxAgeMs: number;
  readonly store: Pick<EventStore, 'end'>;
  readonly standing: Standing;
  /** The rows by which requests are judged. */
  readonly rows: Pick<RowsFreshness, 'condition'>;
}

/** Says if this process can judge access: its directory must have caught up and be fresh. */
export function accessState(conditions: AccessConditions): 'ready' | 'unavailable' {
  return Object.values(accessChecks(conditions)).every((condition) => condition === true)
    ? 'ready'
    : 'unavailable';
}

const LOOKED_EVERY_MS = 20;

/**
 * Resolves once this process can judge access, or when the signal aborts. It must not listen before: if another process
 * listens on the same socket, a request that this one accepted too early would be answered with 503.
 */
export async function whenReady(conditions: AccessConditions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && accessState(conditions) !== 'ready') await pause(LOOKED_EVERY_MS, signal);
}

function accessChecks({ live, maxAgeMs, store, standing, rows }: AccessConditions) {
  const { position } = live.directory;
  return {
    directory_caught_up:
      live.isCaughtUp || `the directory is at position ${position} and has not reached the end of the log`,
    known_to_others: knownToOthers(standing, position, store),
    accounts_up_to_date: rows.condition,
    event_store_heard: live.silenceMs <= maxAgeMs || 'the event store has not answered for too long',
  } satisfies Record<string, Condition>;
}

/**
 * True if commands with `--wait` wait for this process and it has applied everything recorded before they knew of it.
 */
function knownToOthers(standing: Standing, position: Position, store: Pick<EventStore, 'end'>): Condition {
  const isKnown = standing.isKnown(steadyClock.now());
  if (isKnown && standing.hasReached(position)) return true;
  // A directory at the very end of the log is right even without a report, so a full disk does not stop pulls.
  if (isAtEnd(store, position)) return true;
  return isKnown
    ? `the directory is at position ${position}, not yet at what was recorded before the others knew of this process`
    : 'this process has not been able to report itself to the others recently';
}

/** True if the directory is at the end of the log. Only known for a log on this machine. */
function isAtEnd(store: Pick<EventStore, 'end'>, position: Position): boolean {
  try {
    return store.end !== undefined && position >= store.end();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  }
}

export interface ReadinessConditions extends AccessConditions {
  readonly engines: EngineHealth;
  /** In a process with the role `webhooks`: what is missing for its subscription, and whether it was ready before. */
  readonly subscription: { readonly missing: string | undefined; readonly wasReady: boolean } | undefined;
  /** Reads the disk, if a part of the store is on this machine. */
  readonly disk: (() => Promise<Pick<DiskState, 'refusal'>>) | undefined;
  /** True if this process has a part that writes. Pulls are answered even if the disk refuses commits. */
  readonly writes: boolean;
}

/**
 * Returns the readiness of the process. An unavailable event store and a broken subscription are shown at once, but the
 * process stays ready until the directory is too old, since it can serve until then. A process that is stopping is not
 * ready, although it still answers what arrives.
 */
export async function readiness(conditions: ReadinessConditions): Promise<Readiness> {
  const { standing, subscription, disk, writes, engines } = conditions;
  const all: Record<string, Condition> = {
    ...accessChecks(conditions),
    not_stopping: !standing.isStopping || 'the process is stopping',
    ...(subscription && { subscription_connected: subscription.missing ?? true }),
    ...(disk && { disk: (await disk()).refusal ?? true }),
    ...(await engines.state()),
  };
  const ignored = new Set(engines.logs);
  if (!writes) ignored.add('disk');
  if (subscription?.wasReady === true) ignored.add('subscription_connected');
  return readinessOf(
    Object.entries(all).every(([name, condition]) => condition === true || ignored.has(name)),
    all,
  );
}

/** Formats conditions as the operations listener shows them, with the reason of each one that does not hold. */
export function readinessOf(ready: boolean, conditions: Readonly<Record<string, Condition>>): Readiness {
  const entries = Object.entries(conditions);
  const missing = entries.filter((entry): entry is [string, string] => entry[1] !== true);
  const checks = Object.fromEntries(entries.map(([name, condition]) => [name, condition === true]));
  return missing.length === 0 ? { ready, checks } : { ready, checks, reasons: Object.fromEntries(missing) };
}
