/** The plan of a run. The same plan gives the same history. */
export interface Plan {
  readonly seed: string;
  readonly days: number;
  readonly processes: number;
  readonly accounts: number;
  /** The number of transactions a day. */
  readonly perDay: number;
  /** The kinds of faults that may happen. */
  readonly faults: readonly FaultKind[];
}

export const FAULT_KINDS = [
  'ends',
  'slow',
  'stalls',
  'unanswered',
  'refused',
  'pauses',
  'outages',
  'receivers',
  'repeats',
  'clocks',
  'steps',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** The plan of the tests: two processes with every kind of fault. */
export const PLAN: Omit<Plan, 'seed'> = {
  days: 10,
  processes: 2,
  accounts: 4,
  perDay: 20,
  faults: FAULT_KINDS,
};
