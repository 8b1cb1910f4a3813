import { Command, type ErrorOptions } from 'commander';
import { closest, distance } from 'fastest-levenshtein';

/** Of so many letters one may be wrong in what was probably meant. */
const LETTERS_PER_ERROR = 3;

/** Commander's own suggestions share every second letter with what was typed. */
export class SuggestingCommand extends Command {
  override createCommand(name?: string): SuggestingCommand {
    return new SuggestingCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    const [, kind, unknown = ''] = /^error: unknown (option|command) '(.+)'$/.exec(message) ?? [];
    const flags = this.options.map(({ long }) => long ?? '');
    const known = kind === 'option' ? flags : this.commands.map((command) => command.name());
    const nearest = known.length === 0 ? '' : closest(unknown, known);
    const letters = unknown.replace(/^--/, '').length;
    const isNear = kind !== undefined && distance(unknown, nearest) <= letters / LETTERS_PER_ERROR;
    return super.error(isNear ? `${message}\n(Did you mean ${nearest}?)` : message, options);
  }
}

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
