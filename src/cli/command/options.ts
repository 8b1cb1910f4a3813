import { isIP } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { type DomainEventType, eventTypes } from '../../domain/events.ts';
import { isTextTooLong, MAX_TEXT_CHARACTERS } from '../../domain/values/bounds.ts';
import { formatDateTime, parseDateTime } from '../../domain/values/date-time.ts';
import { isEmail } from '../../domain/values/primitives.ts';

/** Readers of arguments and options for commander. They throw `InvalidArgumentError`: wrong usage, exit 2. */

export function idOption(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('It must be an integer from 0 to 2^53-1.');
  }
  return value;
}

/** Milliseconds since the epoch. */
export function dateTimeOption(text: string): number {
  const ms = parseDateTime(text);
  if (ms === undefined) {
    throw new InvalidArgumentError(
      'It must be an ISO 8601 date-time with Z or an offset, such as 2026-09-01T00:00:00Z.',
    );
  }
  return ms;
}

/** Throws if the range ends before it begins: it would always give an empty answer. */
export function requireRange({ since, until }: { readonly since?: number; readonly until?: number }): void {
  if (since !== undefined && until !== undefined && since > until) {
    throw new InvalidArgumentError(
      `--since ${formatDateTime(since)} is after --until ${formatDateTime(until)}: nothing can be between them.`,
    );
  }
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
