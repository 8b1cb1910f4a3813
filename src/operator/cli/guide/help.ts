import type { Command } from 'commander';

/** `fuel help NOUN VERB`: what `fuel NOUN VERB --help` prints. */
export function addHelpCommand(program: Command): void {
  program.helpCommand(false);
  program
    .command('help [names...]')
    .description('print the help of a command, such as fuel help account apply')
    .addHelpText('after', '\nExample:\n  fuel help account apply')
    .action((names: string[]) => find(program, names).help());
}

/** Ends with wrong usage if there is none of this name. */
function find(program: Command, names: readonly string[]): Command {
  let command = program;
  for (const name of names) {
    const next = command.commands.find((candidate) => candidate.name() === name);
    command = next ?? command.error(`error: unknown command '${name}'`, { exitCode: 2 });
  }
  return command;
}
