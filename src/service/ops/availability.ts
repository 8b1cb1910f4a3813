import type { Directory } from '../../accounts/directory/fold/directory.ts';
import type { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import { sinceBoot } from '../../base/clock.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import type { EngineHealth } from '../engines/engine-health.ts';
import type { Readiness } from './ops-server.ts';
import type { Standing } from './standing.ts';

export interface AccessConditions {
  readonly live: Pick<LiveDirectory, 'isCaughtUp' | 'silenceMs'> & {
    readonly directory: Pick<Directory, 'position'>;
  };
  readonly maxAgeMs: number;
  /** Whether commands that wait until everybody has applied a change wait for this process. */
  readonly isMember: () => boolean;
  readonly standing: Standing;
}

/** Whether a condition holds, or what is missing. */
export type Condition = true | string;

/** Whether a thread can judge access: its directory has caught up and is fresh, and the service is not stopping. */
export function accessState(conditions: AccessConditions): 'ready' | 'unavailable' {
  return missingForAccess(conditions) === undefined ? 'ready' : 'unavailable';
}

/** What is missing for judging access, in one line; `undefined` where nothing is. */
export function missingForAccess(conditions: AccessConditions): string | undefined {
  const missing = Object.values(accessChecks(conditions)).filter((condition) => condition !== true);
  return missing.length === 0 ? undefined : missing.join('; ');
}

function accessChecks({ live, maxAgeMs, isMember, standing }: AccessConditions) {
  const { directory } = live;
  return {
    directory_caught_up:
      live.isCaughtUp ||
      `the directory is at position ${directory.position} and has not reached the end of the log`,
    known_to_others: isMember() || whyNoMember(standing, directory.position),
    event_store_heard: live.silenceMs <= maxAgeMs || 'the event store has not answered for too long',
    not_stopping: !standing.isStopping || 'the process stops',
  } satisfies Record<string, Condition>;
}

function whyNoMember(standing: Standing, position: number): string {
  return standing.isKnown(sinceBoot.now())
    ? `the directory is at position ${position} and must first be where the log ended when the others heard of this process`
    : 'this process could not report itself to the others lately';
}

export interface AvailabilityOptions extends AccessConditions {
  readonly engines: EngineHealth;
  /** In a process with the role `webhooks`: what its subscription lacks, and whether it lacked nothing before. */
  readonly subscription?: { readonly missing: string | undefined; readonly wasReady: boolean };
  /** In a process with further API threads: whether each of them can judge access. */
  readonly threads?: () => Condition;
  /** Where a part of the store is on this machine. */
  readonly disk?: {
    readonly read: () => Promise<Pick<DiskState, 'refusal'>>;
    /** Whether this process has a part that writes: pulls are answered without. */
    readonly isNeeded: boolean;
  };
}

/** Whether the main thread can judge access, and whether the process is ready. */
export class Availability {
  readonly #options: AvailabilityOptions;

  constructor(options: AvailabilityOptions) {
    this.#options = options;
  }

  /** From now on the process is not ready, and requests are refused with 503. */
  stopping(): void {
    this.#options.standing.stopping();
  }

  state(): 'ready' | 'unavailable' {
    return accessState(this.#options);
  }

  /**
   * Shows an unavailable event store at once, and a subscription that it has broken, but the process stays ready until the
   * directory is too old, since it can serve until then. A process that only answers pulls stays ready without a disk that
   * takes commits.
   */
  async readiness(): Promise<Readiness> {
    const { subscription, threads, disk, engines } = this.#options;
    const conditions: Record<string, Condition> = {
      ...accessChecks(this.#options),
      ...(threads && { api_threads_ready: threads() }),
      ...(subscription && { subscription_connected: subscription.missing ?? true }),
      ...(disk && { disk: (await disk.read()).refusal ?? true }),
      ...(await engines.state()),
    };
    const deciding = { ...conditions };
    for (const name of engines.logs) delete deciding[name];
    if (disk?.isNeeded === false) delete deciding.disk;
    if (subscription?.wasReady === true) delete deciding.subscription_connected;
    const ready = Object.values(deciding).every((condition) => condition === true);
    return readinessOf(ready, conditions);
  }
}

/** As the operations listener shows it: what is missing, with its reason. */
export function readinessOf(ready: boolean, conditions: Readonly<Record<string, Condition>>): Readiness {
  const entries = Object.entries(conditions);
  const missing = entries.filter((entry): entry is [string, string] => entry[1] !== true);
  const checks = Object.fromEntries(entries.map(([name, condition]) => [name, condition === true]));
  return missing.length === 0 ? { ready, checks } : { ready, checks, reasons: Object.fromEntries(missing) };
}
