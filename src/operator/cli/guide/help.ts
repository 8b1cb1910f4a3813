import type { CommandUnknownOpts } from '@commander-js/extra-typings';

/** Adds `fuel help NOUN VERB`, which prints the same as `fuel NOUN VERB --help`. Commander's own help takes one name only. */
export function addHelpCommand(program: CommandUnknownOpts): void {
  program.helpCommand(false);
  program
    .command('help [names...]')
    .description('print the help of a command, such as fuel help account apply')
    .addHelpText('after', '\nExample:\n  fuel help account apply')
    .action((names) => find(program, names).help());
}

/** Ends the program with wrong usage where help is asked for below a name that is not known: `fuel nonsense --help`. */
export function refuseUnknownName({ command }: { readonly command: CommandUnknownOpts }): string {
  const [name = '-'] = command.args;
  const isName = command.commands.length > 0 && command.registeredArguments.length === 0;
  if (isName && !name.startsWith('-')) find(command, [name]);
  return '';
}

/** Ends the program with wrong usage if there is no such command. */
function find(program: CommandUnknownOpts, names: readonly string[]): CommandUnknownOpts {
  let command = program;
  for (const name of names) {
    const next = command.commands.find((candidate) => candidate.name() === name);
    command = next ?? command.error(`error: unknown command '${name}'`, { exitCode: 2 });
  }
  return command;
}
