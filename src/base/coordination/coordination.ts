/** A process that has not reported for this long counts as dead. */
export const PROCESS_MAX_AGE_MS = 6_000;

/** One process of the service, as other processes on the same stores see it. */
export interface LiveProcess {
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  readonly roles: readonly string[];
  readonly startedAtMs: number;
  /** When it last reported, by the clock of the store. The reported value is ignored. */
  readonly seenAtMs: number;
  /** False while it is starting. */
  readonly isReady: boolean;
}

export interface Lease {
  readonly holder: string;
  /** Measured by the clock of the store. */
  readonly expiresAtMs: number;
}

/**
 * The progress of a follower of the log that stores nothing else. It may be lost at any time: the follower then reads
 * the log again and recognizes what it has already done.
 */
export interface FollowerCheckpoint {
  readonly storeId: string;
  /** The position up to which everything is done. */
  readonly position: number;
  /** The event by which the log is recognized as the same one. */
  readonly anchor: FollowerAnchor | undefined;
}

interface FollowerAnchor {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly recordedAtMs: number;
}

/**
 * Leases, checkpoints of followers, and live processes. Only the clock of the store counts: that of the MongoDB server,
 * or milliseconds since the boot for an embedded file, which belongs to one machine. Processes may therefore disagree
 * about the time of day, and it may be changed.
 *
 * - `acquire` takes or renews the lease for `ttlMs` and returns true if `holder` has it now. A lease has at most one
 *   holder at a time. It ends after `ttlMs` (never, if that is infinite), when its holder is a process of this machine
 *   that has ended, and when it would outlast a lease granted now (the clock has then moved back).
 * - `release` ends the lease if `holder` has it.
 * - `holder` returns the current lease; `undefined` if it is free.
 * - `moveCheckpoint` replaces the checkpoint of a follower, whatever it is; `checkpoint` returns it.
 * - `report` replaces what is known about the process; `removeProcess` removes it; `live` lists the processes that
 *   reported within `maxAgeMs`, the oldest process first.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface Coordination {
  acquire(lease: string, holder: string, ttlMs: number): Promise<boolean>;
  release(lease: string, holder: string): Promise<void>;
  holder(lease: string): Promise<Lease | undefined>;
  checkpoint(follower: string): Promise<FollowerCheckpoint | undefined>;
  moveCheckpoint(follower: string, to: FollowerCheckpoint): Promise<void>;
  report(process: LiveProcess): Promise<void>;
  removeProcess(processId: string): Promise<void>;
  live(maxAgeMs: number): Promise<LiveProcess[]>;
  close(): Promise<void>;
}
