import { parseArgs } from 'node:util';
import { FAULT_KINDS, Simulation } from './simulation.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    days: { type: 'string', default: '10' },
    processes: { type: 'string', default: '2' },
    accounts: { type: 'string', default: '4' },
    'per-day': { type: 'string', default: '20' },
    faults: { type: 'string', default: FAULT_KINDS.join() },
    show: { type: 'string', default: '0' },
  },
});
const plan = {
  seed: values.seed ?? '1',
  days: Number(values.days),
  processes: Number(values.processes),
  accounts: Number(values.accounts),
  perDay: Number(values['per-day']),
  faults: FAULT_KINDS.filter((kind) => values.faults.split(',').includes(kind)),
};
const result = await new Simulation(plan).run();
console.log(result.figures, result.history.print);
for (const line of result.history.about([], Number(values.show) || (result.violations.length > 0 ? 40 : 1)))
  console.log(line);
for (const violation of result.violations) console.log('VIOLATION', violation);
process.exitCode = result.violations.length > 0 ? 1 : 0;
const { counts } = await import('./core/timeline.ts');
if (process.env.SIM_COUNT) console.log([...counts].sort((a, b) => b[1] - a[1]).slice(0, 25));
