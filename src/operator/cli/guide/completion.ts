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
  local -a values
  values=(\${(f)"$(fuel completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if [[ $values == '${FILE}' ]]; then _files; else compadd -a values; fi
}
if [[ \${funcstack[1]} == _fuel ]]; then _fuel "$@"; else compdef _fuel fuel; fi`;

const FISH = `function __fuel
  set -l values (fuel completion fish -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if test "$values" = '${FILE}'; __fish_complete_path (commandline -ct); else; printf '%s\n' $values; end
end
complete -c fuel -f -a '(__fuel)'`;

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;

/**
 * Prints a script that asks this command, with the words that were typed, what a shell may offer for the last of them.
 * The packages that do this for commander are not kept up, or offer no files.
 */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands, options and file names in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addArgument(new Argument('[words...]', 'print what may stand in place of the last of these instead'))
    .addHelpText(
      'after',
      '\nExample:\n  source <(fuel completion bash)                                   # in ~/.bashrc' +
        '\n  source <(fuel completion zsh)                                    # in ~/.zshrc, after compinit' +
        '\n  fuel completion fish > ~/.config/fish/completions/fuel.fish',
    )
    .action((shell: keyof typeof SCRIPTS, words: readonly string[]) => {
      const lines = words.length === 0 ? [SCRIPTS[shell]] : offersFor(program, words);
      process.stdout.write(lines.map((text) => `${text}\n`).join(''));
    });
}

/** What may stand in place of the last of the words after the program's name. */
export function offersFor(program: Command, words: readonly string[]): string[] {
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
  const commands = (taken === 0 ? command.commands : []).map((sub) => sub.name());
  if (isHelp) return commands;
  if (option !== undefined) return wordsOf(option);
  if (words.at(-1)?.startsWith('-'))
    return [...command.options.map(({ long, flags }) => long ?? flags), '--help'];
  const args = command.registeredArguments;
  const last = args.at(-1);
  const argument = args[taken] ?? (last?.variadic ? last : undefined);
  return [...commands, ...(argument === undefined ? [] : wordsOf(argument))];
}

function isValued({ required, optional }: Option): boolean {
  return required || optional;
}

/** `<on|off>` names the words, `<n|off>` a number or a word, `<file>` and `<dir>` are files. */
function wordsOf(of: Argument | Option): string[] {
  const name = of.name();
  if (of instanceof Argument && (name === 'file' || name === 'dir')) return [FILE];
  return of.argChoices ?? (name.includes('|') ? name.split('|').filter((word) => word !== 'n') : []);
}
