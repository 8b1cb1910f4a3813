import type { LiveDirectory } from '../accounts/directory/live-directory.ts';
import { type EngineHealth, EVENT_STORE } from './engine-health.ts';
import type { Readiness } from './ops-server.ts';

/** Whether access can be judged now: the directory has caught up, is fresh, and the service is not stopping. */
export class Availability {
  readonly #live: LiveDirectory;
  readonly #maxAgeMs: number;
  readonly #isSubscribed: (() => boolean) | undefined;
  readonly #engines: EngineHealth;
  #stopping = false;

  constructor(options: {
    readonly live: LiveDirectory;
    readonly maxAgeMs: number;
    readonly engines: EngineHealth;
    /** Where this process delivers webhooks: whether it takes events. The API does not depend on it. */
    readonly isSubscribed?: () => boolean;
  }) {
    this.#live = options.live;
    this.#maxAgeMs = options.maxAgeMs;
    this.#isSubscribed = options.isSubscribed;
    this.#engines = options.engines;
  }

  /** From now on not ready; requests that still arrive are refused with 503. */
  stopping(): void {
    this.#stopping = true;
  }

  state(): 'ready' | 'unavailable' {
    return Object.values(this.#accessChecks()).every(Boolean) ? 'ready' : 'unavailable';
  }

  /**
   * An event store that is away is told at once, and makes the service unready only when the directory has grown
   * too old: until then it serves.
   */
  async readiness(): Promise<Readiness> {
    const subscribed =
      this.#isSubscribed === undefined ? {} : { subscription_connected: this.#isSubscribed() };
    const engines = await this.#engines.state();
    const checks = { ...this.#accessChecks(), ...subscribed, ...engines };
    const { [EVENT_STORE]: _, ...decisive } = checks as Record<string, boolean>;
    return { ready: Object.values(decisive).every(Boolean), checks };
  }

  #accessChecks() {
    return {
      directory_caught_up: this.#live.isCaughtUp,
      event_store_heard: this.#live.silenceMs <= this.#maxAgeMs,
      not_stopping: !this.#stopping,
    };
  }
}
