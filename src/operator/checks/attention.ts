import { FuelError, reasonOf } from '../../base/errors.ts';
import { findingOf, notice, type Problem, type SharedCheck } from './check.ts';
import { checksOf } from './checks.ts';
import type { Facts } from './facts.ts';

const CHECKS = checksOf([]).filter((check): check is SharedCheck => check.madeBy !== 'doctor');

/** A problem as the overview shows it. */
export type Attention = Problem & Required<Pick<Problem, 'id' | 'words' | 'href'>>;

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
    problems.map(
      ({ id = name, words = ['doctor'], href = '/projections', ...each }): Attention => ({
        ...{ id, words, href },
        ...each,
      }),
    ),
  );
  const byReason = Map.groupBy(made, (each) => ('unknown' in each ? each.unknown : undefined));
  const notKnown = [...byReason].flatMap(([reason, of], at) => {
    if (reason === undefined) return [];
    const text = `not known: ${of.map(({ name }) => name).join(', ')} (${reason})`;
    const shown = { id: `unknown-${at}`, words: ['doctor'], href: '/' };
    return [{ ...notice(text, shown), ...shown }];
  });
  return [...problems.toSorted((a, b) => Number(a.isNotice) - Number(b.isNotice)), ...notKnown];
}
