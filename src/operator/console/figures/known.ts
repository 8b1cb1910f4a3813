import { FuelError, reasonOf } from '../../../base/errors.ts';

/** What was read, with the time; or why it is not known. */
export type Known<T> =
  | { readonly value: T; readonly atMs: number }
  | { readonly unknown: string; readonly value?: undefined };

const MAX_WAIT_MS = 3_000;
const LATE = 'the store does not answer';

/** What `read` gives in time. Rejects with faults of the program. */
export async function known<T>(
  read: () => Promise<T>,
  now: () => number,
  { maxWaitMs = MAX_WAIT_MS, late = LATE } = {},
): Promise<Known<T>> {
  const { promise: inTime, resolve } = Promise.withResolvers<Known<T>>();
  const timer = setTimeout(() => resolve({ unknown: late }), maxWaitMs);
  try {
    const atMs = now();
    return await Promise.race([read().then((value) => ({ value, atMs })), inTime]);
  } catch (error) {
    const isTimeout = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name);
    if (!isTimeout && !(error instanceof FuelError)) throw error;
    return { unknown: isTimeout ? LATE : reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

export interface FreshOptions {
  readonly maxAgeMs: number;
  readonly now: () => number;
  /** The rest after a read, in times of its own length: what takes long is read less often. */
  readonly restFactor?: number;
  readonly maxRestMs?: number;
}

/** Reads again once what it has is older than a time, however many ask meanwhile. */
export class Fresh<T> {
  readonly #read: () => Promise<T>;
  readonly #options: Required<FreshOptions>;
  #held: { readonly value: Promise<T>; untilMs: number } | undefined;

  constructor(read: () => Promise<T>, { restFactor = 20, maxRestMs = 15_000, ...options }: FreshOptions) {
    this.#read = read;
    this.#options = { restFactor, maxRestMs, ...options };
  }

  get(): Promise<T> {
    const { maxAgeMs, now, restFactor, maxRestMs } = this.#options;
    const nowMs = now();
    if (this.#held !== undefined && nowMs < this.#held.untilMs) return this.#held.value;
    const value = this.#read();
    const held = { value, untilMs: nowMs + maxAgeMs };
    this.#held = held;
    const rest = (): void => {
      const restMs = Math.min(restFactor * (now() - nowMs), maxRestMs);
      held.untilMs = nowMs + Math.max(maxAgeMs, restMs);
    };
    value.then(rest, () => {
      if (this.#held === held) this.#held = undefined;
    });
    return value;
  }
}
