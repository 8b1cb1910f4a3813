import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import { sinceBoot } from '../../base/clock.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import { isUnavailable } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { EngineHealth } from '../engines/engine-health.ts';
import type { Readiness } from './ops-server.ts';

const KNOWN_UNTIL = 0;
const MUST_REACH = 1;
const STOPPING = 2;
const FIELDS = 3;
const NO_POSITION = -1n;

/**
 * What all threads of a process must know to judge access, in memory that they share: until when (milliseconds since the
 * boot) other processes count this one as alive, how far its directories must be, and whether it stops. The main thread
 * writes it.
 */
export class Standing {
  readonly memory: SharedArrayBuffer;
  readonly #fields: BigInt64Array;
  #joins = 0;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(FIELDS * BigInt64Array.BYTES_PER_ELEMENT);
    this.#fields = new BigInt64Array(this.memory);
    if (memory === undefined) this.mustReach(undefined);
  }

  knownUntil(ms: number): void {
    Atomics.store(this.#fields, KNOWN_UNTIL, BigInt(ms));
  }

  isKnown(nowMs: number): boolean {
    return BigInt(nowMs) < Atomics.load(this.#fields, KNOWN_UNTIL);
  }

  /**
   * The others know of this process from now on. A command with `--wait` waits for the processes that have reported
   * themselves lately. One that could not, because the coordination store was unavailable, is not waited for: a key may
   * have been switched off meanwhile. So after such a time, and at its start, a process first reports itself, then applies
   * everything that was recorded before that.
   */
  join(store: Pick<EventStore, 'head'>, options: { readonly log: Log; readonly signal: AbortSignal }): void {
    this.#joins += 1;
    const join = this.#joins;
    this.mustReach(undefined);
    retryWhileUnavailable(() => store.head(), { ...options, component: 'membership' })
      .then((end) => {
        if (join === this.#joins) this.mustReach(end);
      })
      .catch((error: unknown) => {
        if (!options.signal.aborted)
          options.log.error({ err: error }, 'the end of the log can not be read: no request is served');
      });
  }

  /** Whether a directory at this position has what it must have. */
  hasReached(position: Position): boolean {
    const wanted = Atomics.load(this.#fields, MUST_REACH);
    return wanted !== NO_POSITION && BigInt(position) >= wanted;
  }

  stopping(): void {
    Atomics.store(this.#fields, STOPPING, 1n);
  }

  get isStopping(): boolean {
    return Atomics.load(this.#fields, STOPPING) === 1n;
  }

  /** `undefined`: it is not known yet. */
  mustReach(position: Position | undefined): void {
    Atomics.store(this.#fields, MUST_REACH, position === undefined ? NO_POSITION : BigInt(position));
  }
}

/** Whether a condition holds, or what is missing. */
export type Condition = true | string;

export interface AccessConditions {
  readonly live: Pick<LiveDirectory, 'isCaughtUp' | 'silenceMs'> & {
    readonly directory: Pick<Directory, 'position'>;
  };
  readonly maxAgeMs: number;
  readonly store: Pick<EventStore, 'end'>;
  readonly standing: Standing;
}

/** Whether a thread can judge access: its directory has caught up and is fresh. */
export function accessState(conditions: AccessConditions): 'ready' | 'unavailable' {
  return missingForAccess(conditions) === undefined ? 'ready' : 'unavailable';
}

/** What is missing for judging access, in one line; `undefined` where nothing is. */
export function missingForAccess(conditions: AccessConditions): string | undefined {
  const missing = Object.values(accessChecks(conditions)).filter((condition) => condition !== true);
  return missing.length === 0 ? undefined : missing.join('; ');
}

const LOOKED_EVERY_MS = 20;

/**
 * Resolves once a thread can judge access, or when the signal aborts. Only then it listens: where another process listens
 * on the same socket, a request that this one accepted before would be answered 503.
 */
export async function whenReady(conditions: AccessConditions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && accessState(conditions) !== 'ready') await pause(LOOKED_EVERY_MS, signal);
}

function accessChecks({ live, maxAgeMs, store, standing }: AccessConditions) {
  const { position } = live.directory;
  return {
    directory_caught_up:
      live.isCaughtUp || `the directory is at position ${position} and has not reached the end of the log`,
    known_to_others: knownToOthers(standing, position, store),
    event_store_heard: live.silenceMs <= maxAgeMs || 'the event store has not answered for too long',
  } satisfies Record<string, Condition>;
}

/** Whether commands that wait until everybody has applied a change wait for this process, and it has what it must have. */
function knownToOthers(standing: Standing, position: Position, store: Pick<EventStore, 'end'>): Condition {
  const isKnown = standing.isKnown(sinceBoot.now());
  if (isKnown && standing.hasReached(position)) return true;
  // Without a report it may be judged by what is recorded at this moment, so a disk that takes none does not end reading.
  if (isAtEnd(store, position)) return true;
  return isKnown
    ? `the directory is at position ${position} and must first be where the log ended when the others heard of this process`
    : 'this process could not report itself to the others lately';
}

/** Where the log is on this machine. */
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
  /** In a process with the role `webhooks`: what its subscription lacks, and whether it lacked nothing before. */
  readonly subscription: { readonly missing: string | undefined; readonly wasReady: boolean } | undefined;
  /** In a process with further API threads: whether each of them can judge access. */
  readonly threads: (() => Condition) | undefined;
  /** Where a part of the store is on this machine. */
  readonly disk: (() => Promise<Pick<DiskState, 'refusal'>>) | undefined;
  /** Whether this process has a part that writes: pulls are answered without a disk that takes commits. */
  readonly writes: boolean;
}

/**
 * Whether the process is ready. Shows an unavailable event store at once, and a subscription that it has broken, but the
 * process stays ready until the directory is too old, since it can serve until then. One that stops is not ready, though
 * it answers what still arrives.
 */
export async function readiness(conditions: ReadinessConditions): Promise<Readiness> {
  const { standing, subscription, threads, disk, writes, engines } = conditions;
  const all: Record<string, Condition> = {
    ...accessChecks(conditions),
    not_stopping: !standing.isStopping || 'the process stops',
    ...(threads && { api_threads_ready: threads() }),
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

/** As the operations listener shows it: what is missing, with its reason. */
export function readinessOf(ready: boolean, conditions: Readonly<Record<string, Condition>>): Readiness {
  const entries = Object.entries(conditions);
  const missing = entries.filter((entry): entry is [string, string] => entry[1] !== true);
  const checks = Object.fromEntries(entries.map(([name, condition]) => [name, condition === true]));
  return missing.length === 0 ? { ready, checks } : { ready, checks, reasons: Object.fromEntries(missing) };
}
