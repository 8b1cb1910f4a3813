import { Option } from '@commander-js/extra-typings';
import { parseRange } from '../../../base/config/ip-address.ts';
import { trimmed } from '../../../base/config/trimmed.ts';
import { FuelError } from '../../../base/errors.ts';
import { eventTypes } from '../../../domain/events.ts';
import { isTextTooLong, MAX_TEXT_CHARACTERS } from '../../../domain/values/bounds.ts';
import { isEmail } from '../../../domain/values/primitives.ts';
import { readId, readTime } from '../../answers/filters.ts';
import { searchable } from '../../search/search-text.ts';

/** The summaries and readers of options that several commands have. */
export const REASON = 'the reason, which is recorded for auditors';
export const PERSONAL = 'include drivers, and reasons that may name one (always in --json)';
export const DRY_RUN = 'record nothing, and show what would be recorded';
export const JSON_OPTION = ['--json', 'print JSON only: one document, or one per line for lists'] as const;
export const ACTOR_OPTION = [
  '--actor <name>',
  'who runs the command (default: the login name)',
  readText,
] as const;

/** The first and the last time at which something was `done`. */
export const since = (done: string) =>
  new Option('--since <time>', `${done} at or after this time`).argParser(readTime);
export const until = (done: string) =>
  new Option('--until <time>', `${done} at or before this time`).argParser(readTime);

// Readers of arguments and options throw `USAGE` with what the text must be. They do not repeat it, since it may be anything.

export function readText(text: string): string {
  if (isTextTooLong(text)) throw usage(`must not be longer than ${MAX_TEXT_CHARACTERS} characters`);
  return text;
}

/** Adds to the ids of an argument that takes several. */
export function readIds(text: string, ids: readonly number[] = []): number[] {
  return [...ids, readId(text)];
}

export function readCount(text: string): number {
  return readUpTo(Number.MAX_SAFE_INTEGER)(text);
}

/** Reads a whole number from 1 to `max`. */
export function readUpTo(max: number): (text: string) => number {
  return (text) => {
    const value = readId(text);
    if (value < 1) throw usage('must be at least 1');
    if (value > max) throw usage(`must be at most ${max}`);
    return value;
  };
}

/** A text to search for. Only its letters and digits count. */
export function readSearch(text: string): string {
  if (searchable(text) === '') throw usage('must have a letter or a digit');
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
  `is not an event type: they are ${eventTypes.join(', ')}`,
);

/** Addresses and CIDR ranges. */
export const readAllowList = listOf(
  (entry) => parseRange(entry) !== undefined,
  'is neither an IP address nor a CIDR range such as 203.0.113.0/24',
);

export const readEmails = listOf(isEmail, 'is not an e-mail address');

/** Reads a list that is separated by commas. */
function listOf(isGood: (entry: string) => boolean, fault: string): (text: string) => string[] {
  return (text) => {
    const entries = readList(text);
    if (entries.length === 0) throw usage('must not be empty');
    const wrong = entries.find((entry) => !isGood(entry));
    if (wrong !== undefined) throw usage(`contains ${wrong}, which ${fault}`);
    return entries;
  };
}

export function usage(what: string): FuelError {
  return new FuelError('USAGE', what);
}
