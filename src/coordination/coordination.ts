/** What several processes on the same stores must know of each other. */

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
 * - `acquire` takes or renews the lease for `ttlMs` and says whether `holder` has it now: at most one holder
 *   at a time, judged by the store's one writer.
 * - `release` gives it up if `holder` has it.
 * - `report` replaces what is known of the process; `leave` removes it; `live` lists those seen within
 *   `maxAgeMs`.
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
