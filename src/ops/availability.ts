import type { LiveDirectory } from '../accounts/directory/live-directory.ts';
import { type EngineHealth, EVENT_STORE } from './engine-health.ts';
import type { Readiness } from './ops-server.ts';

/** Whether access can be judged: the directory has caught up and is fresh, and the service is not stopping. */
export class Availability {
  readonly #live: LiveDirectory;
  readonly #maxAgeMs: number;
  readonly #isSubscribed: (() => boolean) | undefined;
  readonly #engines: EngineHealth;
  readonly #isMember: () => boolean;
  #stopping = false;

  constructor(options: {
    readonly live: LiveDirectory;
    readonly maxAgeMs: number;
    readonly engines: EngineHealth;
    /** Whether commands that wait until everybody has applied a change wait for this process. */
    readonly isMember: () => boolean;
    /** In a process with the role `webhooks`: whether its subscription is connected. The API does not depend on it. */
    readonly isSubscribed?: () => boolean;
  }) {
    this.#live = options.live;
    this.#maxAgeMs = options.maxAgeMs;
    this.#isSubscribed = options.isSubscribed;
    this.#engines = options.engines;
    this.#isMember = options.isMember;
  }

  /** From now on the process is not ready, and requests are refused with 503. */
  stopping(): void {
    this.#stopping = true;
  }

  state(): 'ready' | 'unavailable' {
    return Object.values(this.#accessChecks()).every(Boolean) ? 'ready' : 'unavailable';
  }

  /**
   * Shows an unavailable event store at once, but the process stays ready until the directory is too old, since it can
   * serve until then.
   */
  async readiness(): Promise<Readiness> {
    const subscribed =
      this.#isSubscribed === undefined ? {} : { subscription_connected: this.#isSubscribed() };
    const engines = await this.#engines.state();
    const checks = { ...this.#accessChecks(), ...subscribed, ...engines };
    const { [EVENT_STORE]: _, ...deciding } = checks as Record<string, boolean>;
    return { ready: Object.values(deciding).every(Boolean), checks };
  }

  #accessChecks() {
    return {
      directory_caught_up: this.#live.isCaughtUp,
      known_to_others: this.#isMember(),
      event_store_heard: this.#live.silenceMs <= this.#maxAgeMs,
      not_stopping: !this.#stopping,
    };
  }
}
