import type { Plan } from './plan.ts';
import { type Result, Simulation } from './simulation.ts';

const MAX_RUNS = 30;

/** Returns the kind of a violation, without its numbers and names. */
function kindOf({ violations: [first = ''] }: Result): string {
  return first.replace(/\b(?=\w*\d)\w+\b/g, '#').slice(0, 60);
}

/** Reduces days, processes, accounts, transactions and kinds of faults, as long as the same goes wrong. */
export async function shrunk(found: Result): Promise<Result> {
  let least = found;
  let runs = 0;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const plan of smaller(least)) {
      if (++runs > MAX_RUNS) return least;
      const result = await new Simulation(plan).run();
      if (result.violations.length === 0 || kindOf(result) !== kindOf(found)) continue;
      least = result;
      isSmaller = true;
      break;
    }
  }
  return least;
}

function smaller({ plan, figures }: Result): Plan[] {
  const days = Math.ceil(figures.days ?? plan.days);
  const plans: Plan[] = [];
  if (days < plan.days) plans.push({ ...plan, days });
  for (const kind of plan.faults)
    plans.push({ ...plan, days, faults: plan.faults.filter((each) => each !== kind) });
  if (plan.processes > 1) plans.push({ ...plan, days, processes: plan.processes - 1 });
  if (plan.accounts > 1) plans.push({ ...plan, days, accounts: Math.ceil(plan.accounts / 2) });
  if (plan.perDay > 4) plans.push({ ...plan, days, perDay: Math.ceil(plan.perDay / 2) });
  if (days > 1) plans.push({ ...plan, days: days - 1 });
  return plans;
}

/** Returns the command that repeats a run. */
export function commandOf({ seed, days, processes, accounts, perDay, faults }: Plan): string {
  const sizes = `--processes ${processes} --accounts ${accounts} --per-day ${perDay}`;
  return `npm run test:simulation -- --seed ${seed} --days ${days} ${sizes} --faults ${faults.join() || 'none'}`;
}

/** Returns the lines of the history that concern a violation. */
export function historyOf({ history, violations }: Result, last: number): string[] {
  const about = violations.flatMap(
    (text) => text.match(/transaction \d+|\b(?=[a-z]*\d)[a-z0-9]{10}\b/g) ?? [],
  );
  return history.about(about, last);
}
