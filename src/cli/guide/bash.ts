import { commandCases, type Dialect, FILE, singleQuoted, valueCases } from './case-lines.ts';
import type { CompletedCommand } from './command-tree.ts';

const BASH: Dialect = {
  prefix: '',
  described: (words) => singleQuoted(words.map(({ name }) => name).join(' ')),
  names: (names) => singleQuoted(names.join(' ')),
};

/** A completion script for bash 3.2 and later. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  return `# Completion of fuel for bash: source <(fuel completion bash)
_fuel_at() {
  commands= options= valued= arguments=() repeats=
  case $1 in
${commandCases(commands, BASH)}
  esac
}

# Sets what may be given as the value of option $2 of command $1.
_fuel_values() {
  values=
  case "$1 $2" in
${valueCases(commands, BASH)}
  esac
}

_fuel() {
  local cur=\${COMP_WORDS[COMP_CWORD]} command= option= taken=0 index word
  local commands options valued repeats values IFS=$' \\t\\n'
  local -a arguments
  _fuel_at ""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ $word == = ]]; then continue; fi
    if [[ -n $option ]]; then option=; continue; fi
    if [[ $word == -* ]]; then
      if [[ " $valued " == *" $word "* ]]; then option=$word; fi
    elif [[ $taken == 0 && " $commands " == *" $word "* ]]; then
      command="\${command:+$command }$word"
      _fuel_at "$command"
    else
      taken=$((taken + 1))
    fi
  done
  if [[ $cur == = ]]; then cur=; fi
  if [[ -n $option ]]; then
    _fuel_values "$command" "$option"
  elif [[ $cur == -* ]]; then
    values=$options
  else
    if [[ -n $repeats && $taken -ge \${#arguments[@]} ]]; then taken=$((\${#arguments[@]} - 1)); fi
    values="$([[ $taken == 0 ]] && echo "$commands") \${arguments[taken]}"
  fi
  if [[ $values == *'${FILE}' ]]; then
    IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  fi
}
complete -F _fuel fuel
`;
}
