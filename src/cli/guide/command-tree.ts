import type { Argument, Command, Option } from 'commander';

export interface Word {
  readonly name: string;
  readonly summary: string;
}

/** What may follow at one place: these words, a file, or something that a shell can't know. */
export interface Values {
  readonly words: readonly string[];
  readonly isFile: boolean;
}

export interface CompletedOption extends Word {
  /** `null`: it takes no value. */
  readonly values: Values | null;
}

/** One command as a shell completes it. */
export interface CompletedCommand {
  /** Its names after `fuel`: `account apply`. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly CompletedOption[];
  /** By place. The last one stands for all further places if `repeatsLast`. */
  readonly args: readonly Values[];
  readonly repeatsLast: boolean;
}

const HELP = { name: '--help', summary: 'print the help', values: null } as const;

/** The program and all its commands, each before its own. */
export function commandTree(program: Command): CompletedCommand[] {
  const commands = completed(program, '');
  const helped = commands.map(({ path, commands: names }) => ({
    path: joined('help', path),
    commands: names,
    options: [],
    args: [],
    repeatsLast: false,
  }));
  return [
    ...commands.filter(({ path }) => path !== 'help'),
    ...helped.filter(({ commands: { length } }) => length > 0),
  ];
}

function completed(command: Command, path: string): CompletedCommand[] {
  const own = {
    path,
    commands: command.commands.map((sub) => ({ name: sub.name(), summary: sub.description() })),
    options: [...command.options.filter(({ long }) => long !== null).map(optionOf), HELP],
    args: command.registeredArguments.map(valuesOf),
    repeatsLast: command.registeredArguments.at(-1)?.variadic === true,
  };
  return [own, ...command.commands.flatMap((sub) => completed(sub, joined(path, sub.name())))];
}

function joined(path: string, name: string): string {
  return [path, name].filter((part) => part !== '').join(' ');
}

function optionOf(option: Option): CompletedOption {
  const takesValue = option.required || option.optional;
  return {
    name: option.long ?? option.flags,
    summary: option.description,
    values: takesValue ? { words: option.argChoices ?? [], isFile: false } : null,
  };
}

/** `<on|off>` names the words, `<file>` and `<dir>` are files. */
function valuesOf(argument: Argument): Values {
  const name = argument.name();
  return {
    words: argument.argChoices ?? (name.includes('|') ? name.split('|') : []),
    isFile: name === 'file' || name === 'dir',
  };
}
