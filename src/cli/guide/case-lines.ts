import type { CompletedCommand, Values, Word } from './command-tree.ts';

/** How a shell of the Bourne family writes the variables of a command. */
export interface Dialect {
  /** Before the name of each variable. */
  readonly prefix: string;
  /** The value of a variable with words of which each has a summary, which a shell may show. */
  readonly described: (words: readonly Word[]) => string;
  readonly names: (names: readonly string[]) => string;
}

/** In place of words: the names of files. */
export const FILE = '<file>';

/** The branches of a `case` of the command's path, which set what may follow it. */
export function commandCases(
  commands: readonly CompletedCommand[],
  { prefix, described, names }: Dialect,
): string {
  const branch = (command: CompletedCommand): string => {
    const { path, options, args } = command;
    const valued = options.filter(({ values }) => values !== null).map(({ name }) => name);
    const parts = [
      `${prefix}commands=${described(command.commands)}`,
      `${prefix}options=${described(options)}`,
      `${prefix}valued=${names(valued)}`,
      `${prefix}arguments=(${args.map((values) => singleQuoted(wordsOf(values))).join(' ')})`,
      `${prefix}repeats=${command.repeatsLast ? 'yes' : ''}`,
    ];
    return `    ${singleQuoted(path)}) ${parts.join(' ')} ;;`;
  };
  return commands.map(branch).join('\n');
}

/** The branches of a `case` of a command's path and its option, which set what may be the option's value. */
export function valueCases(commands: readonly CompletedCommand[], { prefix }: Dialect): string {
  const all = commands.flatMap(({ path, options }) => options.map((option) => ({ path, ...option })));
  return all
    .flatMap(({ path, name, values }) => {
      const words = values === null ? '' : wordsOf(values);
      if (words === '') return [];
      return `    ${singleQuoted(`${path} ${name}`)}) ${prefix}values=${singleQuoted(words)} ;;`;
    })
    .join('\n');
}

export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function wordsOf({ words, isFile }: Values): string {
  return isFile ? FILE : words.join(' ');
}
