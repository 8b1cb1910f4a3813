import { FuelError, reasonOf } from '../../base/errors.ts';
import { findingOf, type Problem, type SharedCheck } from './check.ts';
import { checksOf } from './checks.ts';
import type { Facts } from './facts.ts';

const CHECKS = checksOf([]).filter((check): check is SharedCheck => check.madeBy !== 'doctor');

/** A problem as the overview shows it. */
export type Attention = Required<Problem>;

/** Finds what needs attention, the problems that somebody must act on first; empty if all is well. */
export async function attention(facts: Facts): Promise<readonly Attention[]> {
  const made = await Promise.all(
    CHECKS.map(async (check) => {
      try {
        return { name: check.name, ...(await findingOf(check, facts)) };
      } catch (error) {
        if (!(error instanceof FuelError)) throw error;
        return { name: check.name, problems: [], unknown: reasonOf(error) };
      }
    }),
  );
  const problems = made.flatMap(({ name, problems }) =>
    problems.map((each) => ({ id: name, words: ['doctor'], href: '/projections', ...each })),
  );
  const byReason = Map.groupBy(made, (each) => ('unknown' in each ? each.unknown : undefined));
  const notKnown = [...byReason].flatMap(([reason, of], at): Attention[] => {
    if (reason === undefined) return [];
    const detail = `not known: ${of.map(({ name }) => name).join(', ')} (${reason})`;
    const shown = { id: `unknown-${at}`, words: ['doctor'], href: '/' };
    return [{ detail, do: 'fuel doctor', isNotice: true, ...shown }];
  });
  return [...problems.toSorted((a, b) => Number(a.isNotice) - Number(b.isNotice)), ...notKnown];
}
