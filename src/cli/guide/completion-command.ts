import { Argument, type Command } from 'commander';
import { bashScript } from './bash.ts';
import { type CompletedCommand, commandTree } from './command-tree.ts';
import { fishScript } from './fish.ts';
import { zshScript } from './zsh.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const satisfies Readonly<
  Record<string, (commands: readonly CompletedCommand[]) => string>
>;

/**
 * Prints a script, made from the commands and options of this program. The packages that do this for commander are not
 * kept up, or too young.
 */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      '\nExample:\n  source <(fuel completion bash)                                   # in ~/.bashrc' +
        '\n  source <(fuel completion zsh)                                    # in ~/.zshrc, after compinit' +
        '\n  fuel completion fish > ~/.config/fish/completions/fuel.fish',
    )
    .action((shell: keyof typeof SCRIPTS) => void process.stdout.write(SCRIPTS[shell](commandTree(program))));
}
