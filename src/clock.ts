/** The source of time, replaced in tests. Milliseconds since the epoch, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
