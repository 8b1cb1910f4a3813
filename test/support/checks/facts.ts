import { NO_ACCOUNTS } from '../../../src/operator/accounts/account-figures.ts';
import { type Finding, findingOf } from '../../../src/operator/checks/check.ts';
import { checksOf } from '../../../src/operator/checks/checks.ts';
import { type CheckLine, lineOf } from '../../../src/operator/checks/doctor.ts';
import type { FactReads, Facts } from '../../../src/operator/checks/facts.ts';

export const NOW_MS = Date.parse('2026-09-10T00:00:00.000Z');

export type Values = { readonly [Name in keyof FactReads]: Awaited<ReturnType<FactReads[Name]>> };

const WELL: Values = {
  disk: undefined,
  readiness: undefined,
  followers: [],
  formerViews: [],
  processes: [],
  accounts: NO_ACCOUNTS,
  withoutContact: [],
  backlog: undefined,
  failing: [],
  stuck: [],
  operations: [],
  damage: [],
};

export interface Given extends Partial<Values> {
  /** The names of the servers. */
  readonly servers?: readonly string[];
  /** A process that asks about itself, with these roles; otherwise doctor asks. */
  readonly roles?: readonly ['api' | 'webhooks'] | readonly [];
}

/** The facts of an embedded service in which all is well, apart from what is given. */
export function factsWith({ servers = [], roles, ...given }: Given = {}): Facts {
  const reads = Object.entries({ ...WELL, ...given }).map(([name, value]) => [name, async () => value]);
  return {
    ...Object.fromEntries(reads),
    config: { FUEL_TLS: 'terminated' },
    clock: { now: () => NOW_MS },
    engines: {
      remote: servers.map((name) => ({ name })),
      embedded: servers.length === 0 ? ['store'] : [],
      state: async () => 'current',
    },
    find: async () => ({}),
    rows: async () => ({}),
    process: roles && { roles },
  } as unknown as Facts;
}

/** Returns doctor's line about these facts. */
export async function doctorSays(name: string, given: Given): Promise<Omit<CheckLine, 'check'>> {
  const check = checksOf([]).find((each) => each.name === name);
  if (check === undefined || check.madeBy === 'doctor') throw new Error(`${name} is no check of any process`);
  return said(findingOf(check, factsWith(given)));
}

/** A finding as doctor prints it. */
export async function said(finding: Finding | Promise<Finding>): Promise<Omit<CheckLine, 'check'>> {
  const { check: _, ...line } = lineOf('', await finding);
  return line;
}
