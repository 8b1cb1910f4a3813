import ipaddr from 'ipaddr.js';

/** Readers of single settings: text in, value out, or an `Error` whose message says what the text must be. */

export interface Address {
  readonly host: string;
  readonly port: number;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };
const MASTER_KEY_BYTES = 32;

function textThat(passes: (text: string) => boolean, problem: string): (text: string) => string {
  return (text) => {
    if (!passes(text)) throw new Error(problem);
    return text;
  };
}

export function duration(text: string): number {
  const match = /^(\d{1,9})(ms|s|m)$/.exec(text);
  const unit = UNITS[match?.[2] ?? ''];
  if (match === null || unit === undefined)
    throw new Error('must be a number with a unit, such as 500ms, 30s or 2m');
  return Number(match[1]) * unit;
}

export function address(text: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
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

/** For connection strings, which may name several hosts; only the driver parses them. */
export const startsWith = (...schemes: readonly string[]) =>
  textThat(
    (text) => schemes.some((scheme) => text.startsWith(scheme) && text.length > scheme.length),
    `must be a connection string that starts with ${schemes.join(' or ')}`,
  );

export const boolean = (text: string): boolean => oneOf('true', 'false')(text) === 'true';

export function list<T>(item: (text: string) => T): (text: string) => readonly T[] {
  return (text) => text.split(',').map((part) => item(part.trim()));
}

export const cidr = textThat(
  (text) => ipaddr.isValidCIDR(text) || ipaddr.isValid(text),
  'must be addresses or CIDR ranges separated by commas, such as 10.0.0.0/8',
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

export const url = (...protocols: readonly string[]) =>
  textThat(
    (text) => protocols.includes(URL.parse(text)?.protocol ?? ''),
    `must be a URL that starts with ${protocols.map((name) => `${name}//`).join(' or ')}`,
  );

/** As `url`, for one that is shown and is not a secret. */
export function urlWithoutCredentials(...protocols: readonly string[]): (text: string) => string {
  return (text) => {
    const { username, password } = new URL(url(...protocols)(text));
    if (username !== '' || password !== '') throw new Error('must be a URL without user and password');
    return text;
  };
}

export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1)
    throw new Error('must be a whole number from 1');
  return value;
}

export const email = textThat((text) => /^[^\s@,]+@[^\s@,]+$/.test(text), 'must be an e-mail address');

/** A name of DNS, in lower case. */
export function hostName(text: string): string {
  const name = text.toLowerCase();
  if (!/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(name))
    throw new Error('must be names of hosts separated by commas, without a port, such as ops.example.com');
  return name;
}

export const text = (value: string): string => value;

export const token = textThat(
  (text) => text.length >= 16,
  'must be tokens of at least 16 characters, separated by commas',
);
