import { Command } from 'commander';
import { closest, distance } from 'fastest-levenshtein';

const MAX_LETTERS_WRONG = 3;

/** `fuel help NOUN VERB`: what `fuel NOUN VERB --help` prints. */
export function addHelpCommand(program: Command): void {
  const help = new Command('help')
    .argument('[names...]', 'a command')
    .description('print the help of a command, such as fuel help account apply')
    .copyInheritedSettings(program)
    .addHelpText('after', '\nExample:\n  fuel help account apply')
    .action((names: string[]) => find(program, names).help());
  program.helpCommand(false).addCommand(help);
}

/** Ends with wrong usage if there is none of this name, and names the one that was probably meant. */
function find(program: Command, names: readonly string[]): Command {
  let command = program;
  for (const name of names) {
    const next = command.commands.find((candidate) => candidate.name() === name);
    command =
      next ?? command.error(`error: unknown command '${name}'${suggestion(name, command)}`, { exitCode: 2 });
  }
  return command;
}

function suggestion(name: string, { commands }: Command): string {
  if (commands.length === 0) return '';
  const nearest = closest(
    name,
    commands.map((command) => command.name()),
  );
  return distance(name, nearest) <= MAX_LETTERS_WRONG ? `\n(Did you mean ${nearest}?)` : '';
}
