import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';

const LOOK_EVERY_MS = 1_000;

interface HostOwnersOptions {
  readonly coordination: Pick<Coordination, 'live'>;
  /** The id with which this process reports that it is alive. */
  readonly holder: string;
  readonly steady: Clock;
}

/**
 * Decides which process delivers to which host. The live processes divide the hosts among themselves by rendezvous hashing, so that
 * each receiver gets one pace, and all reach the same result without communicating. A host moves only when its process ends,
 * or when a new process takes its share. For a second or two processes may disagree and both work on a host; each delivery
 * is still claimed by one of them.
 */
export class HostOwners {
  readonly #options: HostOwnersOptions;
  #processes: readonly string[] = [];
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  readonly #owned = new Map<string, boolean>();

  constructor(options: HostOwnersOptions) {
    this.#options = options;
  }

  /** Learns which processes live, at most once a second. Rejects as the store does. */
  async look(): Promise<void> {
    const { coordination, steady } = this.#options;
    if (steady.now() - this.#lookedAtMs < LOOK_EVERY_MS) return;
    const live = await coordination.live(PROCESS_MAX_AGE_MS);
    this.#lookedAtMs = steady.now();
    const processes = live
      .filter(({ roles, isReady }) => roles.includes('webhooks') && isReady) // while it starts it delivers nothing
      .map(({ id }) => id);
    if (processes.join() === this.#processes.join()) return;
    this.#processes = processes;
    this.#owned.clear();
  }

  owns(host: string): boolean {
    let owned = this.#owned.get(host);
    if (owned === undefined) {
      const { holder } = this.#options;
      const own = rank(holder, host);
      owned = this.#processes.every((other) => other === holder || own > rank(other, host));
      this.#owned.set(host, owned);
    }
    return owned;
  }
}

function rank(process: string, host: string): string {
  return hash('sha256', `${process} ${host}`, 'hex');
}
