import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import type { ChangeListener, ChangeSignal } from '../../../src/tables/tables.ts';

const COMMITS = new Set(['enqueue', 'lease', 'report', 'change']);

export type CommitWatcher = (
  name: string,
  args: readonly unknown[],
  commit: () => Promise<unknown>,
) => Promise<unknown>;

/** The delivery queue as one process has it. Once the process is killed, it gets no more answers. */
export class StoreOfProcess {
  readonly queue: DeliveryQueue;
  readonly #listeners = new Set<ChangeListener>();
  readonly #target: DeliveryQueue;
  #cut = false;

  constructor(target: DeliveryQueue, watch: CommitWatcher) {
    this.#target = target;
    const changed: ChangeSignal = {
      add: (listener) => {
        this.#listeners.add(listener);
        target.changed.add(listener);
      },
      remove: (listener) => target.changed.remove(listener),
      notify: () => target.changed.notify(),
    };
    const call = async (name: string, args: unknown[], method: () => Promise<unknown>): Promise<unknown> => {
      if (this.#cut) return new Promise(() => undefined);
      const result = COMMITS.has(name) ? await watch(name, args, method) : await method();
      return this.#cut ? new Promise(() => undefined) : result;
    };
    this.queue = new Proxy(target, {
      get: (_, name: keyof DeliveryQueue) => {
        if (name === 'changed') return changed;
        const method = target[name] as (...all: unknown[]) => Promise<unknown>;
        return (...all: unknown[]) => call(name, all, () => method.apply(target, all));
      },
    });
  }

  cut(): void {
    this.#cut = true;
    for (const listener of this.#listeners) this.#target.changed.remove(listener);
  }
}
