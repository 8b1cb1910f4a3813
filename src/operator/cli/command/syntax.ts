import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { trimmed } from '../../../base/config/trimmed.ts';
import { FuelError } from '../../../base/errors.ts';
import { usage } from './options.ts';

type Parse = (text: string, previous?: unknown) => unknown;

/** Ends a command's help with an example. */
export function withExample<C extends CommandUnknownOpts>(command: C, example: string): C {
  return command.addHelpText('after', `\nExample:\n  ${example}`);
}

/**
 * Makes a command refuse what every command refuses, with the argument or option as the subject: an empty value, which most
 * likely is an unset variable of a script, a word that is no choice, and an option that is given twice.
 */
export function makeStrict(command: CommandUnknownOpts): void {
  for (const argument of command.registeredArguments) refuseWrong(argument, `<${argument.name()}>`);
  for (const option of command.options) {
    if (!option.required && !option.optional) continue;
    refuseWrong(option, option.long ?? option.flags);
    if (!option.variadic) refuseTwice(command, option);
  }
}

/** Refuses an empty value and a word that is no choice, and names the subject before each fault that the parser finds. */
export function refuseWrong(of: Argument | Option, subject: string): void {
  const { argChoices, variadic } = of;
  const parse = (of.parseArg ?? (variadic ? collect : String)) as Parse;
  of.parseArg = (<T>(text: string, previous: T) => {
    try {
      if (trimmed(text) === '') throw usage('must not be empty');
      if (argChoices?.includes(text) === false) throw usage(`must be ${oneOf(argChoices)}`);
      return variadic ? parse(text, previous) : parse(text);
    } catch (error) {
      throw error instanceof FuelError ? usage(`${subject} ${error.message}`) : error;
    }
  }) as Parse as <T>(text: string, previous: T) => T;
}

function collect(text: string, previous: unknown): unknown {
  return [...(Array.isArray(previous) ? previous : []), text];
}

/** A second value would silently replace the first. */
function refuseTwice(command: CommandUnknownOpts, option: Option): void {
  let times = 0;
  command.on(`option:${option.name()}`, () => {
    times += 1;
    if (times === 2) throw usage(`${option.long} was given twice`);
  });
}

/** Returns `a`, `a or b`, `one of a, b, c`. */
export function oneOf(words: readonly string[]): string {
  return words.length < 3 ? words.join(' or ') : `one of ${words.join(', ')}`;
}

/**
 * Returns what refuses a missing option. Commander does so before it names an unknown option, which may be the one that was
 * misspelt. The help says of each whether it is required.
 */
export function missingRefusal(command: CommandUnknownOpts): () => void {
  const required = command.options.filter(({ mandatory }) => mandatory);
  for (const option of required) {
    option.mandatory = false;
    option.description += ' (required)';
  }
  return () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) throw usage(`${missing.long} is required`);
  };
}
