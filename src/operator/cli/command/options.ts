import { InvalidArgumentError, Option } from 'commander';
import { parseRange } from '../../../base/config/ip-address.ts';
import { trimmed } from '../../../base/config/trimmed.ts';
import { FuelError } from '../../../base/errors.ts';
import { eventTypes } from '../../../domain/events.ts';
import { isTextTooLong, MAX_TEXT_CHARACTERS } from '../../../domain/values/bounds.ts';
import { isEmail } from '../../../domain/values/primitives.ts';
import { readId, readTime } from '../../answers/filters.ts';
import { searchable } from '../../search/search-text.ts';

/** An option whose value is a `T`. Its flag is its name in the command's table: `rateLimit` is `--rate-limit`. */
export interface OptionOf<T> {
  readonly make: (flag: string) => Option;
  /** Never set: it only carries the type. */
  readonly value?: T;
}

export type Options = Readonly<Record<string, OptionOf<unknown>>>;
export type Values<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends OptionOf<infer T> ? T : never;
};

export function optionsOf(table: Options): Option[] {
  return Object.entries(table).map(([name, { make }]) =>
    make(`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`),
  );
}

export function flag(summary: string): OptionOf<true | undefined> {
  return { make: (name) => new Option(name, summary) };
}

/** An option with a value. `read` throws `USAGE`. */
export function valued<T>(
  shown: string,
  summary: string,
  read: (text: string) => T,
): OptionOf<T | undefined> {
  const parse = (text: string): T => {
    try {
      return read(readGiven(text));
    } catch (error) {
      throw error instanceof FuelError ? new InvalidArgumentError(error.message) : error;
    }
  };
  return { make: (name) => new Option(`${name} <${shown}>`, summary).argParser(parse) };
}

/** One of these names, which help and completion show. */
export function choice<T extends string>(
  shown: string,
  summary: string,
  names: readonly T[],
): OptionOf<T | undefined> {
  return { make: (name) => new Option(`${name} <${shown}>`, summary).choices(names) };
}

export function required<T>({ make }: OptionOf<T>): OptionOf<Exclude<T, undefined>> {
  return { make: (name) => make(name).makeOptionMandatory() };
}

export function withDefault<T>(
  { make }: OptionOf<T>,
  value: Exclude<T, undefined>,
): OptionOf<Exclude<T, undefined>> {
  return { make: (name) => make(name).default(value) };
}

export const id = (summary: string) => valued('id', summary, readId);
export const time = (summary: string) => valued('time', summary, readTime);
/** A whole number from 1 to `max`. */
export const count = (summary: string, max?: number) => valued('n', summary, (text) => readCount(text, max));
export const text = (shown: string, summary: string) => valued(shown, summary, readText);
/** Taken as it is, since commander would repeat a wrong value, which may be a whole key. */
export const prefix = (summary: string) => valued('prefix', summary, String);

export const reason = text('reason', 'the reason, which is recorded for auditors');
export const personal = flag('include drivers, and reasons that may name one (always in --json)');
export const actor = text('name', 'who runs the command (default: the login name)');
export const json = flag('print JSON only: one document, or one per line for lists');
/** The range of time in which something was `done`. */
export const sinceUntil = (done: string) => ({
  since: time(`${done} at or after this time`),
  until: time(`${done} at or before this time`),
});

// Readers of arguments and options throw `USAGE`, without the text, which may be anything.

/** Refuses an empty value, which most likely is an unset variable of a script. */
export function readGiven(text: string): string {
  if (trimmed(text) === '') throw usage('It must not be empty.');
  return text;
}

export function readOnOff(text: string): boolean {
  if (text !== 'on' && text !== 'off') throw usage('It must be on or off.');
  return text === 'on';
}

export function readCount(text: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = readId(text);
  if (value < 1) throw usage('It must be at least 1.');
  if (value > max) throw usage(`It must be at most ${max}.`);
  return value;
}

export function readText(text: string): string {
  readGiven(text);
  if (isTextTooLong(text)) throw usage(`It is longer than ${MAX_TEXT_CHARACTERS} characters.`);
  return text;
}

/** A text to search for. Only its letters and digits count. */
export function readSearch(text: string): string {
  if (searchable(text) === '') throw usage('It must have a letter or a digit.');
  return readText(text);
}

export function readList(text: string): string[] {
  return text
    .split(',')
    .map(trimmed)
    .filter((part) => part !== '');
}

export const readEventTypes = listOf(
  (type) => eventTypes.some((known) => known === type),
  `is not an event type: they are ${eventTypes.join(', ')}.`,
);

/** Addresses and CIDR ranges. */
export const readAllowList = listOf(
  (entry) => parseRange(entry) !== undefined,
  'is neither an IP address nor a CIDR range such as 203.0.113.0/24.',
);

export const readEmails = listOf(isEmail, 'is not an e-mail address.');

/** Reads a list that is separated by commas. */
function listOf(isGood: (entry: string) => boolean, fault: string): (text: string) => string[] {
  return (text) => {
    const entries = readList(text);
    if (entries.length === 0) throw usage('It must not be empty.');
    const wrong = entries.find((entry) => !isGood(entry));
    if (wrong !== undefined) throw usage(`${wrong} ${fault}`);
    return entries;
  };
}

export function usage(what: string): FuelError {
  return new FuelError('USAGE', what);
}
