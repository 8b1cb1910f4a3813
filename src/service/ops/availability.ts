import type { LiveDirectory } from '../../accounts/directory/live-directory.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import { type EngineHealth, EVENT_STORE } from './engine-health.ts';
import type { Readiness } from './ops-server.ts';
import type { Standing } from './standing.ts';

export interface AccessConditions {
  readonly live: Pick<LiveDirectory, 'isCaughtUp' | 'silenceMs'>;
  readonly maxAgeMs: number;
  /** Whether commands that wait until everybody has applied a change wait for this process. */
  readonly isMember: () => boolean;
  readonly standing: Standing;
}

/** Whether a thread can judge access: its directory has caught up and is fresh, and the service is not stopping. */
export function accessState(conditions: AccessConditions): 'ready' | 'unavailable' {
  return Object.values(accessChecks(conditions)).every(Boolean) ? 'ready' : 'unavailable';
}

function accessChecks({ live, maxAgeMs, isMember, standing }: AccessConditions) {
  return {
    directory_caught_up: live.isCaughtUp,
    known_to_others: isMember(),
    event_store_heard: live.silenceMs <= maxAgeMs,
    not_stopping: !standing.isStopping,
  };
}

export interface AvailabilityOptions extends AccessConditions {
  readonly engines: EngineHealth;
  /** In a process with the role `webhooks`: what its subscription waits for, if anything. The API does not depend on it. */
  readonly webhooksWaitFor?: () => string | undefined;
  /** In a process with further API threads: whether each of them can judge access. */
  readonly areThreadsReady?: () => boolean;
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
   * Shows an unavailable event store at once, but the process stays ready until the directory is too old, since it can
   * serve until then. A process that only answers pulls stays ready without a disk that takes commits.
   */
  async readiness(): Promise<Readiness> {
    const { webhooksWaitFor, areThreadsReady, disk } = this.#options;
    const waitsFor = webhooksWaitFor?.();
    const refusal = (await disk?.read())?.refusal;
    const checks = {
      ...accessChecks(this.#options),
      ...(areThreadsReady && { api_threads_ready: areThreadsReady() }),
      ...(webhooksWaitFor && { subscription_connected: waitsFor === undefined }),
      ...(disk && { disk: refusal === undefined }),
      ...(await this.#options.engines.state()),
    };
    const { [EVENT_STORE]: _, ...deciding }: Record<string, boolean> = checks;
    if (disk?.isNeeded === false) delete deciding.disk;
    const ready = Object.values(deciding).every(Boolean);
    const reasons = {
      ...(refusal !== undefined && { disk: refusal }),
      ...(waitsFor !== undefined && { subscription_connected: waitsFor }),
    };
    return Object.keys(reasons).length === 0 ? { ready, checks } : { ready, checks, reasons };
  }
}
