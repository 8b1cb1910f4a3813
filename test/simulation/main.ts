import { parseArgs } from 'node:util';
import { FAULT_KINDS, type Plan } from './plan.ts';
import { commandOf, historyOf, shrunk } from './shrink.ts';
import { type Result, Simulation } from './simulation.ts';

const OPTIONS = {
  options: {
    seed: { type: 'string' },
    days: { type: 'string', default: '20' },
    processes: { type: 'string', default: '2' },
    accounts: { type: 'string', default: '4' },
    'per-day': { type: 'string', default: '20' },
    faults: { type: 'string', default: FAULT_KINDS.join() },
    /** Prints all lines of the history. */
    history: { type: 'boolean', default: false },
    'no-shrinking': { type: 'boolean', default: false },
  },
} as const;

const NO_FAULTS = 'none';
const values = given();

const DEFAULT_MINUTES = 10;
const LINES = 60;

function given() {
  try {
    return parseArgs(OPTIONS).values;
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function refuse(text: string): never {
  console.error(text);
  process.exit(2);
}

function planOf(seed: string): Plan {
  const count = (name: 'days' | 'processes' | 'accounts' | 'per-day'): number => {
    if (/^[1-9]\d{0,5}$/.test(values[name])) return Number(values[name]);
    return refuse(`--${name} ${values[name]}: give a number from 1 on`);
  };
  const kinds = values.faults === NO_FAULTS ? [] : values.faults.split(',');
  const faults = FAULT_KINDS.filter((kind) => kinds.includes(kind));
  if (faults.length < kinds.length)
    return refuse(`--faults ${values.faults}: give some of ${FAULT_KINDS}, or ${NO_FAULTS}`);
  const counts = { days: count('days'), processes: count('processes'), accounts: count('accounts') };
  return { seed, ...counts, perDay: count('per-day'), faults };
}

function summary({ plan, figures, history, violations }: Result): string {
  const { days = 0, seconds = 0, events, requests, ends, faults } = figures;
  const speed = `${days.toFixed(0)} days in ${seconds.toFixed(1)} s`;
  const what = `${events} events, ${requests} requests to receivers, ${ends} ends, ${faults} faults`;
  return `seed ${plan.seed}: ${violations.length === 0 ? 'holds' : 'FAILS'}, ${speed}, ${what}, history ${history.print}`;
}

async function tell(found: Result): Promise<void> {
  const least = values['no-shrinking'] ? found : await shrunk(found);
  for (const line of historyOf(least, LINES)) console.log(line);
  for (const violation of least.violations) console.log(`VIOLATION ${violation}`);
  console.log(`repeat: ${commandOf(found.plan)}`);
  if (least !== found) console.log(`in short: ${commandOf(least.plan)}`);
}

async function one(seed: string): Promise<boolean> {
  const result = await new Simulation(planOf(seed)).run();
  console.log(summary(result));
  if (values.history)
    for (const line of result.history.about([], Number.POSITIVE_INFINITY)) console.log(line);
  if (result.violations.length === 0) return true;
  await tell(result);
  return false;
}

if (values.seed !== undefined) process.exitCode = (await one(values.seed)) ? 0 : 1;
else {
  const untilMs = performance.now() + Number(process.env.FUEL_SIMULATION_MINUTES ?? DEFAULT_MINUTES) * 60_000;
  for (let seed = Date.now() % 1_000_000_000; performance.now() < untilMs; seed++) {
    if (await one(String(seed))) continue;
    process.exitCode = 1;
    break;
  }
}
