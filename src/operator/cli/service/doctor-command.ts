import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { printableLine } from '../../../base/printable.ts';
import { output } from '../command/command.ts';

/** `fuel doctor` works with an invalid configuration and unreachable engines: it is how an operator finds the fault. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check everything that the service depends on, and say what is wrong and what to do')
    .option('--json', 'print one JSON document a line and nothing else')
    .addHelpText('after', '\nExample:\n  fuel doctor')
    .action(async (options: { json?: true }) => {
      const { examine } = await import('../../checks/doctor.ts'); // loads much that no other command needs
      const out = output(options.json === true);
      const results = await examine(process.env, systemClock);
      const width = results.reduce((most, { check }) => Math.max(most, check.length), 0);
      for (const result of results.toSorted((a, b) => Number(a.ok) - Number(b.ok))) {
        const { check, ok, detail, do: remedy } = result;
        const line = printableLine(`${ok ? 'ok   ' : 'WRONG'}  ${check.padEnd(width)}  ${detail}`);
        const todo = remedy === null ? '' : `\n       ${''.padEnd(width)}  do: ${printableLine(remedy)}`;
        out.result(result, line + todo);
      }
      process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
    });
}
