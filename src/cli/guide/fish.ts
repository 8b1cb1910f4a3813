import type { CompletedCommand, CompletedOption, Values } from './command-tree.ts';

/** A completion script for fish. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const valued = new Set(
    commands.flatMap(({ options }) =>
      options.filter(({ values }) => values !== null).map(({ name }) => name),
    ),
  );
  return `# Completion of fuel for fish: fuel completion fish > ~/.config/fish/completions/fuel.fish
# Prints the words before the cursor without options and their values, one a line.
function __fuel_words
    set -l tokens (commandline -opc)
    set -e tokens[1]
    set -l value no
    for token in $tokens
        if test $value = yes
            set value no
            continue
        end
        switch $token
            case ${[...valued].join(' ')}
                set value yes
            case '-*'
            case '*'
                printf '%s\\n' $token
        end
    end
end

# Whether the command of these words was typed, and then as many arguments; with "+" as many or more.
function __fuel_is
    set -l typed (__fuel_words)
    set -l names (string split -n ' ' -- $argv[1])
    set -l wanted (math (count $names) + (string replace + '' -- $argv[2]))
    if string match -q '*+' -- $argv[2]
        test (count $typed) -ge $wanted; or return 1
    else
        test (count $typed) -eq $wanted; or return 1
    end
    for index in (seq (count $names))
        test $typed[$index] = $names[$index]; or return 1
    end
end

complete -c fuel -f
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, commands, options, args, repeatsLast }: CompletedCommand): string[] {
  return [
    ...commands.map(({ name, summary }) => `${at(path, '0')} -a ${name} -d ${quoted(summary)}`),
    ...options.map((option) => optionLine(path, option, commands.length > 0)),
    ...args.flatMap((values, place) => {
      const isRepeated = repeatsLast && place === args.length - 1;
      const words = valuesOf(values);
      return words === '' ? [] : [`${at(path, isRepeated ? `${place}+` : String(place))} ${words}`];
    }),
  ];
}

function optionLine(path: string, { name, summary, values }: CompletedOption, hasCommands: boolean): string {
  const value = values === null ? '' : ` -x ${valuesOf(values)}`.trimEnd();
  return `${at(path, hasCommands ? '0' : '0+')} -l ${name.slice(2)}${value} -d ${quoted(summary)}`;
}

function at(path: string, place: string): string {
  return `complete -c fuel -n ${quoted(`__fuel_is "${path}" ${place}`)}`;
}

function valuesOf({ words, isFile }: Values): string {
  if (isFile) return '-F';
  return words.length === 0 ? '' : `-a ${quoted(words.join(' '))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
