import { closest, distance } from 'fastest-levenshtein';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { FuelError } from '../errors.ts';
import {
  type Env,
  optional,
  readSettings,
  type SettingTable,
  secret,
  setting,
  textOf,
  type ValuesOf,
} from './setting.ts';
import { trimmed } from './trimmed.ts';
import * as read from './values.ts';

/** The maximum number of retry delays. Each one adds an attempt. */
const MAX_RETRIES = 10;

/** The settings that every process has, whatever its engines are. */
const core = {
  FUEL_ENVIRONMENT: setting('staging', read.oneOf('staging', 'production')),
  FUEL_DATA_DIR: setting('./data', read.text),
  FUEL_LISTEN: setting('127.0.0.1:8443', read.address),
  FUEL_TLS: setting('served', read.oneOf('served', 'terminated')),
  FUEL_TLS_CERT: optional(read.text),
  FUEL_TLS_KEY: optional(read.text),
  FUEL_OPS_LISTEN: setting('127.0.0.1:9464', read.address),
  FUEL_OPS_HOSTS: optional(read.list(read.hostName)),
  FUEL_EDGE: setting('embedded', read.oneOf('embedded', 'external')),
  FUEL_EDGE_TOKEN: secret(optional(read.list(read.token))),
  FUEL_DIRECTORY_MAX_AGE: setting('60s', read.duration),
  FUEL_TRUSTED_PROXIES: optional(read.list(read.cidr)),
  FUEL_MASTER_KEY: secret(optional(read.list(read.masterKey))),
  FUEL_SEAL_KEY: secret(optional(read.sealKeys)),
  FUEL_IMAGES_ENDPOINT: setting('https://photos.example.com', read.urlWithoutCredentials('https:', 'http:')),
  FUEL_IMAGES_REGION: setting('us-east-1', read.text),
  FUEL_IMAGES_BUCKET: setting('fuel-photos', read.text),
  FUEL_IMAGES_ACCESS_KEY_ID: setting('SAMPLEACCESSKEY', read.text),
  FUEL_IMAGES_SECRET_ACCESS_KEY: secret(setting('sample-secret-access-key', read.text)),
  FUEL_SMTP_URL: secret(optional(read.url('smtp:', 'smtps:'))),
  FUEL_MAIL_FROM: optional(read.sender),
  FUEL_OPERATOR_EMAIL: optional(read.email),
  FUEL_OPERATOR_LOGIN: optional(read.text),
  FUEL_WEBHOOK_ALLOW_PRIVATE: setting('false', read.boolean),
  FUEL_WEBHOOK_RETRY_DELAYS: setting('30s,150s', retryDelays),
  FUEL_WEBHOOK_CA: optional(read.text),
  FUEL_WEBHOOK_PROXY: secret(optional(read.proxy)),
  FUEL_DELIVERY_RETENTION_DAYS: setting('90', read.positiveInteger),
  FUEL_REQUEST_LOG_DAYS: setting('30', read.positiveInteger),
  FUEL_STOP_DELAY: setting('2s', read.duration),
  FUEL_LOG_LEVEL: setting('info', read.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')),
} as const;

/** The values of the settings. */
export type Config = ValuesOf<typeof core> & {
  /** The engines' settings that are set, as text by name. Each engine reads its own with its own table. */
  readonly ofEngines: Readonly<Record<string, string>>;
};

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

/** The roles that a process can have. By default it has all of them. */
export const ROLES = ['api', 'projector', 'webhooks', 'notices'] as const;
export type Role = (typeof ROLES)[number];

/** The settings that each role requires in production. A secret is only given to the processes that use it. */
const NEEDED_IN_PRODUCTION: readonly (readonly [readonly Role[], readonly (keyof typeof core)[]])[] = [
  [ROLES, ['FUEL_MASTER_KEY']],
  [['projector'], ['FUEL_SEAL_KEY']], // it seals the log
  [
    ['api', 'webhooks'], // they sign links to photos
    [
      'FUEL_IMAGES_ENDPOINT',
      'FUEL_IMAGES_REGION',
      'FUEL_IMAGES_BUCKET',
      'FUEL_IMAGES_ACCESS_KEY_ID',
      'FUEL_IMAGES_SECRET_ACCESS_KEY',
    ],
  ],
  [['notices'], ['FUEL_SMTP_URL', 'FUEL_MAIL_FROM', 'FUEL_OPERATOR_EMAIL']],
];

/** The command that generates each secret. */
const MADE_WITH: Readonly<Partial<Record<keyof typeof core, string>>> = {
  FUEL_MASTER_KEY: 'openssl rand -base64 32',
  FUEL_SEAL_KEY: 'openssl genpkey -algorithm ed25519',
};

/** Makes a reader of the environment for a service whose engines have these settings. */
export function configReader(ofEngines: SettingTable) {
  const settings: SettingTable = { ...core, ...ofEngines };
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
  const own = readSettings(core, env);
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
  if ((values.FUEL_TLS_CERT === undefined) !== (values.FUEL_TLS_KEY === undefined)) {
    faults.push('FUEL_TLS_CERT, FUEL_TLS_KEY: set both or neither');
  }
  if (terminated && textOf(env, 'FUEL_TRUSTED_PROXIES') === undefined) {
    faults.push(
      'FUEL_TRUSTED_PROXIES: needed when FUEL_TLS is terminated: the addresses of the proxies that end TLS',
    );
  }
  if (values.FUEL_EDGE === 'external' && values.FUEL_EDGE_TOKEN === undefined) {
    faults.push('FUEL_EDGE_TOKEN: needed when FUEL_EDGE is external: the token that the gateway sends');
  }
  if (production && values.FUEL_WEBHOOK_ALLOW_PRIVATE === true) {
    faults.push('FUEL_WEBHOOK_ALLOW_PRIVATE: not possible in production');
  }
  if (!production) return faults;
  for (const [needing, names] of NEEDED_IN_PRODUCTION) {
    if (!needing.some((role) => roles.includes(role))) continue;
    for (const name of names) {
      if (textOf(env, name) !== undefined) continue;
      const made = MADE_WITH[name];
      faults.push(`${name}: needed in production${made === undefined ? '' : ` (make one with ${made})`}`);
    }
  }
  if (roles.includes('api') && !terminated && values.FUEL_TLS_CERT === undefined) {
    faults.push('FUEL_TLS_CERT, FUEL_TLS_KEY: needed in production unless FUEL_TLS is terminated');
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

function retryDelays(text: string): readonly number[] {
  const delays = read.list(read.duration)(text);
  if (delays.length > MAX_RETRIES)
    throw new Error(`must be at most ${MAX_RETRIES} waits, before attempts 2, 3, …, such as 30s,150s`);
  return delays;
}
