import type { Environment } from '../../../src/domain/account-events.ts';

const KEY = /^svc_(live|test)_([a-z0-9]{10})_([A-Za-z0-9]{43})$/;

interface ParsedKey {
  readonly environment: Environment;
  readonly prefix: string;
  readonly secret: string;
}

/** The parts of an API key; `undefined` for text of any other form. */
export function parseKey(text: string): ParsedKey | undefined {
  const [, form, prefix, secret] = KEY.exec(text) ?? [];
  if (prefix === undefined || secret === undefined) return undefined;
  return { environment: form === 'live' ? 'production' : 'staging', prefix, secret };
}
