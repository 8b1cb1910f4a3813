/** A process that has not reported for this long counts as dead. */
export const PROCESS_MAX_AGE_MS = 6_000;

/** One process of the service, as the others on the same stores see it. */
export interface LiveProcess {
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  readonly roles: readonly string[];
  readonly startedAtMs: number;
  readonly seenAtMs: number;
  /** How far the process's directory has applied the log; `null` before it caught up. */
  readonly directoryPosition: number | null;
}

export interface Lease {
  readonly holder: string;
  readonly expiresAtMs: number;
}

/**
 * Leases and live processes.
 *
 * - `acquire` takes or renews the lease for `ttlMs` and returns whether `holder` has it now. A lease has at most one
 *   holder at a time.
 * - `release` ends the lease if `holder` has it.
 * - `holder` returns the present lease; `undefined` where it is free.
 * - `report` replaces what is known of the process; `leave` removes it; `live` lists those that reported within
 *   `maxAgeMs`, the oldest process first.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface Coordination {
  acquire(lease: string, holder: string, ttlMs: number): Promise<boolean>;
  release(lease: string, holder: string): Promise<void>;
  holder(lease: string): Promise<Lease | undefined>;
  report(process: LiveProcess): Promise<void>;
  leave(processId: string): Promise<void>;
  live(maxAgeMs: number): Promise<LiveProcess[]>;
  close(): Promise<void>;
}
