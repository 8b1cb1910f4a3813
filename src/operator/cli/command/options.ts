import { isIP } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { FuelError } from '../../../base/errors.ts';
import { type DomainEventType, eventTypes } from '../../../domain/events.ts';
import { isTextTooLong, MAX_TEXT_CHARACTERS } from '../../../domain/values/bounds.ts';
import { isEmail } from '../../../domain/values/primitives.ts';
import { readId, readTime } from '../../answers/filters.ts';

/** Readers of arguments and options for commander. They throw `InvalidArgumentError`: wrong usage, exit 2. */

export const idOption = asOption(readId);
/** Milliseconds since the epoch. */
export const dateTimeOption = asOption(readTime);

/** Turns a reader that throws `USAGE` into one for commander. */
function asOption<T>(read: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return read(text);
    } catch (error) {
      throw error instanceof FuelError ? new InvalidArgumentError(error.message) : error;
    }
  };
}

export function eventTypesOption(text: string): DomainEventType[] {
  return listOption(text).map((type) => {
    const known = eventTypes.find((name) => name === type);
    if (known === undefined) {
      throw new InvalidArgumentError(`${type} is no event type: they are ${eventTypes.join(', ')}.`);
    }
    return known;
  });
}

export function onOff(text: string): boolean {
  if (text !== 'on' && text !== 'off') throw new InvalidArgumentError('It must be on or off.');
  return text === 'on';
}

export function countOption(text: string): number {
  const value = idOption(text);
  if (value < 1) throw new InvalidArgumentError('It must be at least 1.');
  return value;
}

export function listOption(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

export function nameOption(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must not be empty.');
  if (isTextTooLong(text)) {
    throw new InvalidArgumentError(`It is longer than ${MAX_TEXT_CHARACTERS} characters.`);
  }
  return text;
}

/** For a command that switches something off. */
export function reasonOption(command: Command): Command {
  return command.option('--reason <reason>', 'why, for the auditors', nameOption);
}

/** Addresses and CIDR ranges, separated by commas. */
export function allowListOption(text: string): string[] {
  const entries = listOption(text);
  for (const entry of entries) {
    if (!isAddressOrRange(entry)) {
      throw new InvalidArgumentError(
        `${entry} is neither an IP address nor a CIDR range such as 203.0.113.0/24.`,
      );
    }
  }
  return entries;
}

export function emailsOption(text: string): string[] {
  const emails = listOption(text);
  for (const email of emails) {
    if (!isEmail(email)) throw new InvalidArgumentError(`${email} is not an e-mail address.`);
  }
  return emails;
}

function isAddressOrRange(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  const version = entry.includes('%') || rest.length > 0 ? 0 : isIP(address);
  if (version === 0 || bits === undefined) return version !== 0;
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}
