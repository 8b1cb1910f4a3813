import { FuelError, reasonOf } from '../../../base/errors.ts';

/** What was read, with the time; or why it is not known. */
export type Known<T> =
  | { readonly value: T; readonly atMs: number }
  | { readonly unknown: string; readonly value?: undefined };

const MAX_WAIT_MS = 3_000;

/** What `read` gives in time. Rejects with faults of the program. */
export async function known<T>(
  read: () => Promise<T>,
  now: () => number,
  maxWaitMs = MAX_WAIT_MS,
): Promise<Known<T>> {
  const { promise: late, resolve } = Promise.withResolvers<Known<T>>();
  const timer = setTimeout(() => resolve({ unknown: 'the store does not answer' }), maxWaitMs);
  try {
    const atMs = now();
    return await Promise.race([read().then((value) => ({ value, atMs })), late]);
  } catch (error) {
    const isTimeout = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name);
    if (!isTimeout && !(error instanceof FuelError)) throw error;
    return { unknown: isTimeout ? 'the store does not answer' : reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

/** The rest after a read, in times of its own length: what takes long is read less often. */
const REST_FACTOR = 20;
/** The longest rest. */
const MAX_REST_MS = 15_000;

/** Reads again once what it has is older than a time, however many ask meanwhile. */
export class Fresh<T> {
  readonly #read: () => Promise<T>;
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  #held: { readonly value: Promise<T>; untilMs: number } | undefined;

  constructor(read: () => Promise<T>, options: { readonly maxAgeMs: number; readonly now: () => number }) {
    this.#read = read;
    this.#maxAgeMs = options.maxAgeMs;
    this.#now = options.now;
  }

  get(): Promise<T> {
    const nowMs = this.#now();
    if (this.#held !== undefined && nowMs < this.#held.untilMs) return this.#held.value;
    const value = this.#read();
    const held = { value, untilMs: nowMs + this.#maxAgeMs };
    this.#held = held;
    const rest = (): void => {
      const tookMs = this.#now() - nowMs;
      held.untilMs = nowMs + Math.max(this.#maxAgeMs, Math.min(REST_FACTOR * tookMs, MAX_REST_MS));
    };
    value.then(rest, () => {
      if (this.#held === held) this.#held = undefined;
    });
    return value;
  }
}
