import { commandCases, type Dialect, FILE, singleQuoted, valueCases } from './case-lines.ts';
import type { CompletedCommand } from './command-tree.ts';

const ZSH: Dialect = {
  prefix: 'fuel_',
  described: (words) => `(${words.map(({ name, summary }) => singleQuoted(`${name}:${summary}`)).join(' ')})`,
  names: (names) => `(${names.join(' ')})`,
};

/** A completion script for zsh, to be sourced, or found as `_fuel` in $fpath. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef fuel
# Completion of fuel for zsh: source <(fuel completion zsh)
_fuel_at() {
  fuel_commands=() fuel_options=() fuel_valued=() fuel_arguments=() fuel_repeats=
  case $1 in
${commandCases(commands, ZSH)}
  esac
}

# Sets what may be given as the value of option $2 of command $1.
_fuel_values() {
  fuel_values=
  case "$1 $2" in
${valueCases(commands, ZSH)}
  esac
}

_fuel() {
  local fuel_command= fuel_option= fuel_repeats= fuel_values= word
  local -a fuel_commands fuel_options fuel_valued fuel_arguments
  integer taken=0 index
  _fuel_at ""
  for ((index = 2; index < CURRENT; index++)); do
    word=\${words[index]}
    if [[ -n $fuel_option ]]; then
      fuel_option=
    elif [[ $word == -* ]]; then
      if ((\${fuel_valued[(Ie)$word]})); then fuel_option=$word; fi
    elif ((taken == 0 && \${\${(@)fuel_commands%%:*}[(Ie)$word]})); then
      fuel_command="\${fuel_command:+$fuel_command }$word"
      _fuel_at "$fuel_command"
    else
      ((taken += 1))
    fi
  done
  if [[ -n $fuel_option ]]; then
    _fuel_values "$fuel_command" "$fuel_option"
  elif [[ \${words[CURRENT]} == -* ]]; then
    _describe option fuel_options
    return
  else
    if [[ -n $fuel_repeats ]] && ((taken >= $#fuel_arguments)); then taken=$(($#fuel_arguments - 1)); fi
    if ((taken == 0 && $#fuel_commands)); then _describe command fuel_commands; fi
    fuel_values=\${fuel_arguments[taken + 1]}
  fi
  if [[ $fuel_values == '${FILE}' ]]; then
    _files
  elif [[ -n $fuel_values ]]; then
    compadd -- \${=fuel_values}
  fi
}
if [[ \${funcstack[1]} == _fuel ]]; then _fuel "$@"; else compdef _fuel fuel; fi
`;
}
