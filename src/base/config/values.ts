import { isEmail } from '../../domain/values/primitives.ts';
import { ENCODE_CREDENTIALS } from '../errors.ts';
import { parseRange } from './ip-address.ts';
import { sealKeysIn } from './seal-keys.ts';
import { trimmed } from './trimmed.ts';

/** Readers of single settings. Each turns a text into a value, or throws an `Error` that says what the text must be. */

export interface Address {
  readonly host: string;
  readonly port: number;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };
const MASTER_KEY_BYTES = 32;

/** Any text without control characters. They usually come from copying and are invisible. */
export function text(value: string): string {
  return assertedWithout(/[\p{Cc}\u2028\u2029]/u, value);
}

/** Like `text`, but on one or more lines. */
export function lines(value: string): string {
  return assertedWithout(/(?![\t\r\n])\p{Cc}/u, value);
}

/** Checks the text of keys in PEM. It stays a text, since threads receive it and parse it again. */
export function sealKeys(text: string): string {
  sealKeysIn(lines(text));
  return text;
}

function assertedWithout(control: RegExp, value: string): string {
  const [found] = control.exec(value) ?? [];
  if (found === undefined) return value;
  const code = found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  throw new Error(`must not contain the control character U+${code}`);
}

function textThat(passes: (text: string) => boolean, problem: string): (text: string) => string {
  return (value) => {
    if (!passes(text(value))) throw new Error(problem);
    return value;
  };
}

export function duration(text: string): number {
  const match = /^(\d{1,9})(ms|s|m)$/.exec(text);
  const unit = UNITS[match?.[2] ?? ''];
  if (match === null || unit === undefined)
    throw new Error('must be a number with a unit, such as 500ms, 30s or 2m');
  return Number(match[1]) * unit;
}

export function address(value: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text(value));
  const port = Number(match?.[3]);
  if (match === null || port > 65_535)
    throw new Error('must be host:port, such as 127.0.0.1:8443 or [::1]:8443');
  return { host: match[1] ?? match[2] ?? '', port };
}

export function oneOf<T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    if (value === undefined) throw new Error(`must be ${values.join(' or ')}`);
    return value;
  };
}

/** Checks only the scheme of a connection string. It may name several hosts, and only the driver parses it. */
export const startsWith = (...schemes: readonly string[]) =>
  textThat(
    (text) => schemes.some((scheme) => text.startsWith(scheme) && text.length > scheme.length),
    `must be a connection string that starts with ${schemes.join(' or ')}`,
  );

export const boolean = (text: string): boolean => oneOf('true', 'false')(text) === 'true';

export function list<T>(item: (text: string) => T): (text: string) => readonly T[] {
  return (text) => text.split(',').map((part) => item(trimmed(part)));
}

export const cidr = textThat(
  (text) => (parseRange(text)?.[1] ?? 0) > 0,
  'must be addresses or CIDR ranges separated by commas, such as 10.0.0.0/8, and not all addresses',
);

export function masterKey(text: string): Buffer {
  const key = Buffer.from(text, 'base64');
  if (
    key.length !== MASTER_KEY_BYTES ||
    key.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')
  ) {
    throw new Error('must be 32 bytes in base64 (openssl rand -base64 32), several separated by commas');
  }
  return key;
}

export function url(...protocols: readonly string[]): (text: string) => string {
  const schemes = protocols.map((name) => `${name}//`);
  return (value) => {
    if (protocols.includes(URL.parse(text(value))?.protocol ?? '')) return value;
    const advice = value.includes('@') ? `; ${ENCODE_CREDENTIALS}` : '';
    throw new Error(`must be a URL that starts with ${schemes.join(' or ')}${advice}`);
  };
}

/** Like `url`, for a URL that is not a secret and is shown. */
export function urlWithoutCredentials(...protocols: readonly string[]): (text: string) => string {
  return (text) => {
    const { username, password } = new URL(url(...protocols)(text));
    if (username !== '' || password !== '') throw new Error('must be a URL without user and password');
    return text;
  };
}

export interface ProxyAddress extends Address {
  /** The value of the header `Proxy-Authorization`. */
  readonly authorization?: string;
}

/** The URL of a forward proxy, such as `http://user:password@proxy:3128`. */
export function proxy(value: string): ProxyAddress {
  const { hostname, port, username, password, pathname, search, hash } = new URL(url('http:')(value));
  if (`${pathname}${search}${hash}` !== '/') throw new Error('must have nothing after host and port');
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
  if (username === '') return at;
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return { ...at, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
  } catch {
    throw new Error(ENCODE_CREDENTIALS);
  }
}

export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1)
    throw new Error('must be a whole number from 1');
  return value;
}

export function ratio(text: string): number {
  if (!/^(0?\.\d+|[01](\.0+)?)$/.test(text)) throw new Error('must be a number from 0 to 1, such as 0.1');
  return Number(text);
}

export const email = textThat(isEmail, 'must be an e-mail address');

export const sender = textThat(
  (text) => isEmail(/^[^<>]*<([^<>]*)>$/.exec(text)?.[1] ?? text),
  'must be an e-mail address, with or without a name, such as Fuel <fuel@example.com>',
);

/** A DNS name, converted to lower case. */
export function hostName(text: string): string {
  const name = text.toLowerCase();
  if (!/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(name))
    throw new Error('must be names of hosts separated by commas, without a port, such as ops.example.com');
  return name;
}

export const token = textThat(
  (text) => text.length >= 16,
  'must be tokens of at least 16 characters, separated by commas',
);
