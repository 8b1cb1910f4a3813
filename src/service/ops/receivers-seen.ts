import { Gauge, type Registry } from 'prom-client';
import { world } from '../../base/world.ts';

const WINDOW_MS = 15 * 60_000;

/** Counts the receivers that recently accepted a delivery and those that only failed. Each counts once. */
export class ReceiversSeen {
  readonly #takenAtMs = new Map<string, number>();
  readonly #failedAtMs = new Map<string, number>();

  constructor(registry: Registry) {
    const count = () => this.#count();
    new Gauge({
      name: 'fuel_receivers_attempted',
      help: 'Receivers of the last 15 minutes, by host: those that took something, and those that failed only.',
      labelNames: ['outcome'],
      registers: [registry],
      collect() {
        for (const [outcome, value] of Object.entries(count())) this.set({ outcome }, value);
      },
    });
  }

  saw(host: string, isTaken: boolean): void {
    (isTaken ? this.#takenAtMs : this.#failedAtMs).set(host, world.elapsedMs());
  }

  #count(): { readonly delivered: number; readonly failed: number } {
    const sinceMs = world.elapsedMs() - WINDOW_MS;
    for (const seen of [this.#takenAtMs, this.#failedAtMs])
      for (const [host, atMs] of seen) if (atMs < sinceMs) seen.delete(host);
    const failed = this.#failedAtMs.keys().filter((host) => !this.#takenAtMs.has(host));
    return { delivered: this.#takenAtMs.size, failed: [...failed].length };
  }
}
