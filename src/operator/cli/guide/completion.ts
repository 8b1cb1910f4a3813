import { Argument, type Command, type Option } from 'commander';

/** Offered in place of the names of files, which the shell knows. */
const FILE = '<file>';

const BASH = `_fuel() {
  local cur=\${COMP_WORDS[COMP_CWORD]} IFS=$'\\n' values
  values=$(fuel completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $cur == = ]]; then cur=; fi
  if [[ $values == '${FILE}' ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  fi
}
complete -F _fuel fuel`;

const ZSH = `#compdef fuel
_fuel() {
  local -a offered
  offered=(\${(f)"$(fuel completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if [[ $offered == '${FILE}:' ]]; then
    _files
  elif (($#offered)); then
    _describe word offered
  fi
}
if [[ \${funcstack[1]} == _fuel ]]; then _fuel "$@"; else compdef _fuel fuel; fi`;

const FISH = `function __fuel_offers
  set -l typed (commandline -opc)
  set -l offered (fuel completion fish -- $typed[2..] (commandline -ct) 2>/dev/null)
  if string match -q '${FILE}*' -- $offered
    __fish_complete_path (commandline -ct)
  else
    string join \\n -- $offered
  end
end
complete -c fuel -f -a '(__fuel_offers)'`;

/** What stands between a word and its summary; without it only the word is printed. */
const SHELLS = {
  bash: { script: BASH, separator: undefined },
  zsh: { script: ZSH, separator: ':' },
  fish: { script: FISH, separator: '\t' },
} as const;
type Shell = keyof typeof SHELLS;

/**
 * Prints a script that asks this command, with the words that were typed, what a shell may offer for the last of them.
 * The packages that do this for commander are not kept up, or offer no files.
 */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SHELLS)))
    .addArgument(new Argument('[words...]', 'print what may stand in place of the last of these instead'))
    .addHelpText(
      'after',
      '\nExample:\n  source <(fuel completion bash)                                   # in ~/.bashrc' +
        '\n  source <(fuel completion zsh)                                    # in ~/.zshrc, after compinit' +
        '\n  fuel completion fish > ~/.config/fish/completions/fuel.fish',
    )
    .action((shell: Shell, words: readonly string[]) => {
      const { script, separator } = SHELLS[shell];
      const lines = offersFor(program, words).map(({ word, summary = '' }) =>
        separator === undefined ? word : `${word}${separator}${summary}`,
      );
      process.stdout.write(words.length === 0 ? `${script}\n` : lines.map((text) => `${text}\n`).join(''));
    });
}

interface Offer {
  readonly word: string;
  readonly summary?: string;
}

/** What may stand in place of the last of the words after the program's name. */
export function offersFor(program: Command, words: readonly string[]): Offer[] {
  const isHelp = words[0] === 'help' && words.length > 1;
  const before = words.slice(isHelp ? 1 : 0, -1).filter((word) => word !== '='); // bash splits --name=value there
  let command = program;
  let option: Option | undefined;
  let taken = 0;
  for (const word of before) {
    const sub = taken === 0 ? command.commands.find((each) => each.name() === word) : undefined;
    if (option !== undefined) option = undefined;
    else if (word.startsWith('-'))
      option = command.options.find((each) => each.long === word && isValued(each));
    else if (sub !== undefined) command = sub;
    else taken += 1;
  }
  const commands = (taken === 0 ? command.commands : []).map((sub) => ({
    word: sub.name(),
    summary: sub.description(),
  }));
  if (isHelp) return commands;
  if (option !== undefined) return wordsOf(option);
  if (words.at(-1)?.startsWith('-'))
    return [
      ...command.options.map(({ long, flags, description }) => ({
        word: long ?? flags,
        summary: description,
      })),
      { word: '--help', summary: 'print the help' },
    ];
  const args = command.registeredArguments;
  const last = args.at(-1);
  const argument = args[taken] ?? (last?.variadic ? last : undefined);
  return [...commands, ...(argument === undefined ? [] : wordsOf(argument))];
}

function isValued({ required, optional }: Option): boolean {
  return required || optional;
}

/** `<on|off>` names the words, `<file>` and `<dir>` are files. */
function wordsOf(of: Argument | Option): Offer[] {
  const name = of.name();
  if (of instanceof Argument && (name === 'file' || name === 'dir')) return [{ word: FILE }];
  const words = of.argChoices ?? (name.includes('|') ? name.split('|') : []);
  return words.map((word) => ({ word }));
}
