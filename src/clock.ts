/** Where time comes from: the system in service, a fake in tests. Milliseconds since the epoch, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
