import type { LiveDirectory } from '../accounts/directory/live-directory.ts';
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
  /** In a process with the role `webhooks`: whether its subscription is connected. The API does not depend on it. */
  readonly isSubscribed?: () => boolean;
  /** In a process with further API threads: whether each of them can judge access. */
  readonly areThreadsReady?: () => boolean;
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
   * serve until then.
   */
  async readiness(): Promise<Readiness> {
    const { isSubscribed, areThreadsReady } = this.#options;
    const checks = {
      ...accessChecks(this.#options),
      ...(areThreadsReady && { api_threads_ready: areThreadsReady() }),
      ...(isSubscribed && { subscription_connected: isSubscribed() }),
      ...(await this.#options.engines.state()),
    };
    const { [EVENT_STORE]: _, ...deciding } = checks as Record<string, boolean>;
    return { ready: Object.values(deciding).every(Boolean), checks };
  }
}
