import { Argument, type CommandUnknownOpts, type Option } from '@commander-js/extra-typings';
import { refuseWrong } from '../command/syntax.ts';

/** Tells the shell to offer file names, which it knows itself. */
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
 * Adds a command that prints a completion script. The script calls the command again with the words that were typed, and gets
 * what the shell may offer for the last word. The packages that do this for commander are unmaintained or offer no files.
 */
export function addCompletionCommand(program: CommandUnknownOpts): void {
  const completion = program
    .command('completion')
    .description('print a script that completes commands, options and file names in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(['bash', 'zsh', 'fish']))
    .addArgument(new Argument('[words...]', 'print the completions of the last of these words instead'))
    .addHelpText(
      'after',
      '\nExample:\n  source <(fuel completion bash)                                   # in ~/.bashrc' +
        '\n  source <(fuel completion zsh)                                    # in ~/.zshrc, after compinit' +
        '\n  fuel completion fish > ~/.config/fish/completions/fuel.fish',
    )
    .action((shell, words) => {
      const lines = words.length === 0 ? [SCRIPTS[shell]] : offersFor(program, words);
      process.stdout.write(lines.map((text) => `${text}\n`).join(''));
    }) as CommandUnknownOpts;
  // The words are typed so far, so the last one may be empty.
  for (const argument of completion.registeredArguments.slice(0, 1)) refuseWrong(argument, '<shell>');
}

/** The completions of the last of these words, which come after the program's name. */
export function offersFor(program: CommandUnknownOpts, words: readonly string[]): string[] {
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

/** The words that an argument or an option can have. `<n|off>` is a number or a word; `<file>` and `<dir>` are file names. */
function wordsOf(of: Argument | Option): string[] {
  const name = of instanceof Argument ? of.name() : (/[<[]([^>\]]+)/.exec(of.flags)?.[1] ?? '');
  if (name === 'file' || name === 'dir') return [FILE];
  if (of.argChoices !== undefined && of.argChoices.length > 0) return of.argChoices;
  return name.includes('|') ? name.split('|').filter((word) => word !== 'n') : [];
}
