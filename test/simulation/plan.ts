import { FAULT_KINDS, type Plan } from './simulation.ts';

/** The plan of the tests: two processes with every kind of fault. */
export const PLAN: Omit<Plan, 'seed'> = {
  ...{ days: 10, processes: 2, accounts: 4, perDay: 20 },
  faults: FAULT_KINDS,
};
