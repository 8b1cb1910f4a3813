import type { LiveDirectory } from '../access/live-directory.ts';
import type { Readiness } from '../http/ops-server.ts';

/** Whether access can be judged now: the directory has caught up, is fresh, and the service is not stopping. */
export class Availability {
  readonly #live: LiveDirectory;
  readonly #maxAgeMs: number;
  readonly #isSubscribed: (() => boolean) | undefined;
  #stopping = false;

  constructor(options: {
    readonly live: LiveDirectory;
    readonly maxAgeMs: number;
    /** Where this process delivers webhooks: whether it takes events. The API does not depend on it. */
    readonly isSubscribed?: () => boolean;
  }) {
    this.#live = options.live;
    this.#maxAgeMs = options.maxAgeMs;
    this.#isSubscribed = options.isSubscribed;
  }

  /** From now on not ready; requests that still arrive are refused with 503. */
  stopping(): void {
    this.#stopping = true;
  }

  state(): 'ready' | 'unavailable' {
    return Object.values(this.#accessChecks()).every(Boolean) ? 'ready' : 'unavailable';
  }

  readiness(): Readiness {
    const subscribed =
      this.#isSubscribed === undefined ? {} : { subscription_connected: this.#isSubscribed() };
    const checks = { ...this.#accessChecks(), ...subscribed };
    return { ready: Object.values(checks).every(Boolean), checks };
  }

  #accessChecks() {
    return {
      directory_caught_up: this.#live.isCaughtUp,
      event_store_heard: this.#live.silenceMs <= this.#maxAgeMs,
      not_stopping: !this.#stopping,
    };
  }
}
