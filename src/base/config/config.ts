import { closest, distance } from 'fastest-levenshtein';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { FuelError } from '../errors.ts';
import { type Env, readSettings, type SettingTable, textOf, type ValuesOf } from './setting.ts';
import { MADE_WITH, NEEDED_IN_PRODUCTION, ownSettings, ROLES, type Role } from './settings.ts';
import { trimmed } from './trimmed.ts';

/** The values of the settings. */
export type Config = ValuesOf<typeof ownSettings> & {
  /** The engines' settings that are set, as text by name. Each engine reads its own with its own table. */
  readonly ofEngines: Readonly<Record<string, string>>;
};

/** A certificate and its key. */
const PAIRS = [
  ['FUEL_TLS_CERT', 'FUEL_TLS_KEY'],
  ['FUEL_WEBHOOK_CLIENT_CERT', 'FUEL_WEBHOOK_CLIENT_KEY'],
] as const;

export interface ShownSetting {
  readonly name: string;
  readonly value: string | null;
  readonly source: 'environment' | 'default' | 'unset';
  readonly fault: string | null;
}

/** Variables of `bin/fuel` and of the tests, which are not settings. */
const NOT_SETTINGS = /^FUEL_(COMPILE_CACHE|(TEST|CRASH|SIMULATION|FUZZ|DISKS|SOAK)_.*)$/;
/** A name with at most one typing error per this many letters still resembles a setting. */
const LETTERS_PER_ERROR = 5;

/** User and password before the host of a URL. They must never be shown. */
const CREDENTIALS = /:\/\/.*@/s;

/** Makes a reader of the environment for a service whose engines have these settings. */
export function configReader(ofEngines: SettingTable) {
  const settings: SettingTable = { ...ownSettings, ...ofEngines };
  return {
    /**
     * Reads the settings from the environment. Throws `CONFIG_INVALID` with all faults together. `purpose` is `serve`
     * for the service itself, whose roles need more settings than a command does.
     */
    loadConfig(
      env: Env,
      purpose: 'serve' | 'command',
      roles: readonly Role[] = purpose === 'serve' ? ROLES : [],
    ): Config {
      const { config, faults } = readAll(ofEngines, env);
      const all = [...faults.values(), ...ruleFaults(config, env, roles)];
      if (all.length > 0) throw invalidConfig(all);
      return config as Config;
    },
    /** The variables that look like settings of this service but are not. */
    unknownSettings: (env: Env): UnknownSetting[] => unknownSettings(Object.keys(settings), env),
    /** Every setting with its source and its fault, secrets masked. Never throws. */
    showConfig(env: Env): { readonly settings: ShownSetting[]; readonly faults: string[] } {
      const { config, faults } = readAll(ofEngines, env);
      const shown = Object.entries(settings).map(([name, { fallback, secret: isSecret }]): ShownSetting => {
        const given = textOf(env, name);
        const text = given ?? fallback;
        const masked =
          isSecret && given !== undefined ? '********' : text?.replace(CREDENTIALS, '://********@');
        return {
          name,
          value: masked ?? null,
          source: given !== undefined ? 'environment' : text !== undefined ? 'default' : 'unset',
          fault: faults.get(name) ?? null,
        };
      });
      return { settings: shown, faults: [...faults.values(), ...ruleFaults(config, env, ROLES)] };
    },
    /** The settings that are valid, for code that must work with an invalid configuration. Never throws. */
    inspectConfig(env: Env): InspectedConfig {
      const { config, faults } = readAll(ofEngines, env);
      const defaults = readAll(ofEngines, {}).config;
      const given = Object.keys(settings).filter((name) => settings[name]?.secret);
      const secrets = given.flatMap((name) => secretsIn(textOf(env, name)));
      return { config: { ...defaults, ...config } as Config, faulty: new Set(faults.keys()), secrets };
    },
  };
}

export function invalidConfig(faults: readonly string[]): FuelError {
  return new FuelError('CONFIG_INVALID', `the configuration is not valid:\n  ${faults.join('\n  ')}`);
}

export interface InspectedConfig {
  /** The settings. A faulty one has its default or is left out. */
  readonly config: Config;
  readonly faulty: ReadonlySet<string>;
  /** The texts that must never be shown: the secrets that are set, and the passwords in their URLs. */
  readonly secrets: readonly string[];
}

export interface UnknownSetting {
  readonly name: string;
  /** The setting with the nearest name, if one is near enough. */
  readonly resembles: string | null;
}

function unknownSettings(names: readonly string[], env: Env): UnknownSetting[] {
  return Object.keys(env)
    .toSorted()
    .filter((name) => name.startsWith('FUEL_') && !names.includes(name) && !NOT_SETTINGS.test(name))
    .map((name) => {
      const nearest = closest(name, names);
      return { name, resembles: distance(name, nearest) <= name.length / LETTERS_PER_ERROR ? nearest : null };
    });
}

function secretsIn(text: string | undefined): string[] {
  if (text === undefined) return [];
  const [, password] = /:\/\/[^/@]*:([^/]*)@/.exec(text) ?? [];
  return [
    text,
    ...text.split(',').map(trimmed),
    ...(password === undefined ? [] : [password, unescaped(password)]),
  ];
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readAll(
  ofEngines: SettingTable,
  env: Env,
): { readonly config: Partial<Config>; readonly faults: ReadonlyMap<string, string> } {
  const own = readSettings(ownSettings, env);
  const engines = readSettings(ofEngines, env);
  const given = Object.keys(engines.values).flatMap((name) => {
    const text = textOf(env, name);
    return text === undefined ? [] : [[name, text] as const];
  });
  const config = { ...own.values, ofEngines: Object.fromEntries(given) };
  return { config, faults: new Map([...own.faults, ...engines.faults]) };
}

/** Returns the faults of settings that are well formed but not allowed together in a process of these roles. */
function ruleFaults(values: Partial<Config>, env: Env, roles: readonly Role[]): string[] {
  const faults: string[] = [];
  const production = values.FUEL_ENVIRONMENT === 'production';
  const terminated = values.FUEL_TLS === 'terminated';
  for (const [cert, key] of PAIRS)
    if ((values[cert] === undefined) !== (values[key] === undefined))
      faults.push(`${cert}, ${key}: must be set together`);
  if (terminated && textOf(env, 'FUEL_TRUSTED_PROXIES') === undefined) {
    faults.push('FUEL_TRUSTED_PROXIES: must name the proxies that end TLS, since FUEL_TLS is terminated');
  }
  if (values.FUEL_EDGE === 'external' && values.FUEL_EDGE_TOKEN === undefined) {
    faults.push('FUEL_EDGE_TOKEN: must be the token that the gateway sends, since FUEL_EDGE is external');
  }
  if (production && values.FUEL_WEBHOOK_ALLOW_PRIVATE === true) {
    faults.push('FUEL_WEBHOOK_ALLOW_PRIVATE: must not be true in production');
  }
  if (!production) return faults;
  for (const [needing, names] of NEEDED_IN_PRODUCTION) {
    if (!needing.some((role) => roles.includes(role))) continue;
    for (const name of names) {
      if (textOf(env, name) !== undefined) continue;
      const made = MADE_WITH[name];
      faults.push(
        `${name}: must be set in production${made === undefined ? '' : ` (make one with ${made})`}`,
      );
    }
  }
  if (roles.includes('api') && !terminated && values.FUEL_TLS_CERT === undefined) {
    faults.push('FUEL_TLS_CERT, FUEL_TLS_KEY: must be set in production unless FUEL_TLS is terminated');
  }
  return faults;
}

/** How long ended deliveries are kept. */
export function retentionMs({ FUEL_DELIVERY_RETENTION_DAYS: days }: Config): number {
  return days * DAY_MS;
}

/** The requests of keys are kept for this long. */
export function requestLogMs({ FUEL_REQUEST_LOG_DAYS: days }: Config): number {
  return days * DAY_MS;
}
