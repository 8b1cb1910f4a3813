import { Argument, type Command, type Option } from 'commander';

/** In place of words: the names of files. */
const FILE = '<file>';

/** Prints what may be offered for the last of its arguments, with summaries, from a table of words. */
const AWK = `BEGIN { FS = "\\t"; n = ARGC - 1; for (i = 1; i <= n; i++) typed[i] = ARGV[i]; ARGC = 1 }
{ path[NR] = $1; slot[NR] = $2; word[NR] = $3; shown[NR] = $3 "\\t" $4; kind[$1, $3] = $2 }
END {
  for (i = 1; i < n; i++) {
    if (typed[i] == "=") continue
    if (option != "") { option = ""; continue }
    if (typed[i] ~ /^-/) { if (kind[at, typed[i]] == "valued") option = typed[i] }
    else if (taken == 0 && kind[at, typed[i]] == "command") at = at (at == "" ? "" : " ") typed[i]
    else taken++
  }
  for (i = 1; i <= NR; i++) {
    if (path[i] != at) continue
    if (option != "") { if (slot[i] != option) continue }
    else if (typed[n] ~ /^-/) { if (slot[i] != "option" && slot[i] != "valued") continue }
    else if (slot[i] == "command") { if (taken > 0) continue }
    else if (slot[i] !~ /^[0-9]/ || slot[i] + 0 > taken || (slot[i] + 0 < taken && slot[i] !~ /[+]$/)) continue
    print shown[i]
  }
}`;

const BASH = `_fuel() {
  local cur=\${COMP_WORDS[COMP_CWORD]} IFS=$'\\n' values
  values=$(_fuel_offered "\${COMP_WORDS[@]:1:COMP_CWORD}" | cut -f 1)
  if [[ $cur == = ]]; then cur=; fi
  if [[ $values == '${FILE}' ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  fi
}
complete -F _fuel fuel`;

const ZSH = `_fuel() {
  local -a offered
  offered=(\${(f)"$(_fuel_offered "\${(@)words[2,CURRENT]}")"})
  offered=(\${offered/$'\\t'/:})
  if [[ $offered == '${FILE}:' ]]; then
    _files
  elif (($#offered)); then
    _describe word offered
  fi
}
if [[ \${funcstack[1]} == _fuel ]]; then _fuel "$@"; else compdef _fuel fuel; fi`;

const FISH = `function __fuel_offers
  set -l typed (commandline -opc)
  set -l offered (_fuel_offered $typed[2..] (commandline -ct))
  if string match -q '${FILE}*' -- $offered
    __fish_complete_path (commandline -ct)
  else
    string join \\n -- $offered
  end
end
complete -c fuel -f -a '(__fuel_offers)'`;

const bourne = (call: string): string => `_fuel_offered() {\n${call} "$@"\n}`;
const bourneQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const SHELLS = {
  bash: { quoted: bourneQuoted, offered: bourne, script: BASH },
  zsh: { quoted: bourneQuoted, offered: bourne, script: ZSH },
  fish: {
    quoted: (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
    offered: (call: string): string => `function _fuel_offered\n${call} $argv\nend`,
    script: FISH,
  },
} as const;

/**
 * Prints a script, made from the commands and options of this program. The packages that do this for commander are not
 * kept up, or too young.
 */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SHELLS)))
    .addHelpText(
      'after',
      '\nExample:\n  source <(fuel completion bash)                                   # in ~/.bashrc' +
        '\n  source <(fuel completion zsh)                                    # in ~/.zshrc, after compinit' +
        '\n  fuel completion fish > ~/.config/fish/completions/fuel.fish',
    )
    .action((shell: keyof typeof SHELLS) => void process.stdout.write(completionScript(program, shell)));
}

function completionScript(program: Command, shell: keyof typeof SHELLS): string {
  const { quoted, offered, script } = SHELLS[shell];
  const table = offersOf(program).map(
    ({ path, slot, word, summary }) => `${path}\t${slot}\t${word}\t${summary}\n`,
  );
  const words = offered(`printf '%s' ${quoted(table.join(''))} | awk ${quoted(AWK)}`);
  const first = shell === 'zsh' ? '#compdef fuel\n' : '';
  return `${first}# Completion of fuel for ${shell}: see fuel completion --help\n${words}\n\n${script}\n`;
}

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
