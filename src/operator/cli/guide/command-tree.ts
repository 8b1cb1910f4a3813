import type { Argument, Command, Option } from 'commander';

/** In place of words: the names of files. */
export const FILE = '<file>';

/** A word that a shell may offer. */
export interface Offer {
  /** Names of commands after `fuel` that were typed before: `account apply`. */
  readonly path: string;
  /**
   * Where: `command` of the path; an `option`, or a `valued` one; the value of the option of this name; an argument by its
   * place, `1`, or `1+` for that and all further ones.
   */
  readonly slot: string;
  readonly word: string;
  readonly summary: string;
}

/** Every word that may follow the program's name. */
export function offersOf(program: Command): Offer[] {
  const offers = offersAt(program, '').filter(({ path }) => path !== 'help');
  const helped = offers.filter(({ slot }) => slot === 'command');
  return [...offers, ...helped.map((offer) => ({ ...offer, path: joined('help', offer.path) }))];
}

function offersAt(command: Command, path: string): Offer[] {
  const offer = (slot: string, word: string, summary = ''): Offer => ({ path, slot, word, summary });
  const { commands, registeredArguments: args } = command;
  const last = args.length - 1;
  return [
    ...commands.map((sub) => offer('command', sub.name(), sub.description())),
    ...command.options.flatMap((option) => {
      const name = option.long ?? option.flags;
      const kind = option.required || option.optional ? 'valued' : 'option';
      return [offer(kind, name, option.description), ...wordsOf(option).map((word) => offer(name, word))];
    }),
    offer('option', '--help', 'print the help'),
    ...args.flatMap((argument, place) => {
      const slot = `${place}${place === last && argument.variadic ? '+' : ''}`;
      return wordsOf(argument).map((word) => offer(slot, word));
    }),
    ...commands.flatMap((sub) => offersAt(sub, joined(path, sub.name()))),
  ];
}

function joined(path: string, name: string): string {
  return [path, name].filter((part) => part !== '').join(' ');
}

/** `<on|off>` names the words, `<file>` and `<dir>` are files. */
function wordsOf(of: Argument | Option): readonly string[] {
  const name = of.name();
  if ('required' in of && 'variadic' in of && (name === 'file' || name === 'dir')) return [FILE];
  return of.argChoices ?? (name.includes('|') ? name.split('|') : []);
}
