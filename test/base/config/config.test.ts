import { describe, expect, test } from 'vitest';
import type { Config } from '../../../src/base/config/config.ts';
import { loadConfig, showConfig } from '../../../src/engines/engines.ts';
import { type Env, faultsOf, faulty } from '../../support/service/config-faults.ts';
import { productionEnv } from '../../support/service/production.ts';

const production = productionEnv({ certPath: '/cert.pem', keyPath: '/key.pem', pem: '' });

const PHOTOS = ['ENDPOINT', 'REGION', 'BUCKET', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'].map(
  (name) => `FUEL_IMAGES_${name}`,
);

const without = (env: Env, ...names: string[]): Env => ({
  ...env,
  ...Object.fromEntries(names.map((name) => [name, undefined])),
});

test('with nothing set, every setting has its documented default', () => {
  const expected: Partial<Config> = {
    FUEL_ENVIRONMENT: 'staging',
    FUEL_DATA_DIR: './data',
    FUEL_LISTEN: { host: '127.0.0.1', port: 8443 },
    FUEL_TLS: 'served',
    FUEL_OPS_LISTEN: { host: '127.0.0.1', port: 9464 },
    FUEL_EDGE: 'embedded',
    FUEL_DIRECTORY_MAX_AGE: 60_000,
    FUEL_WEBHOOK_ALLOW_PRIVATE: false,
    FUEL_WEBHOOK_RETRY_DELAYS: [30_000, 150_000],
    FUEL_DELIVERY_RETENTION_DAYS: 90,
    FUEL_LOG_LEVEL: 'info',
  };
  for (const purpose of ['serve', 'command'] as const)
    expect(loadConfig({}, purpose)).toMatchObject(expected);
  const { settings, faults } = showConfig({});
  expect(faults).toEqual([]);
  expect(settings.filter(({ source }) => source === 'unset').map(({ name }) => name)).toEqual([
    'FUEL_TLS_CERT',
    'FUEL_TLS_KEY',
    'FUEL_OPS_HOSTS',
    'FUEL_EDGE_TOKEN',
    'FUEL_TRUSTED_PROXIES',
    ...[
      'FUEL_MASTER_KEY',
      'FUEL_SEAL_KEY',
      'FUEL_SMTP_URL',
      'FUEL_MAIL_FROM',
      'FUEL_OPERATOR_EMAIL',
      'FUEL_OPERATOR_LOGIN',
      'FUEL_WEBHOOK_CA',
      'FUEL_WEBHOOK_CLIENT_CERT',
      'FUEL_WEBHOOK_CLIENT_KEY',
      'FUEL_WEBHOOK_PROXY',
    ],
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_SERVICE_NAME',
    'OTEL_RESOURCE_ATTRIBUTES',
    'EVENTSTORE_URL',
    'MONGODB_URL',
    'POSTGRES_URL',
  ]);
});

test('an empty variable counts as not set', () => {
  expect(loadConfig({ FUEL_LOG_LEVEL: '', EVENTSTORE_URL: '' }, 'serve')).toMatchObject({
    FUEL_LOG_LEVEL: 'info',
  });
  expect(loadConfig({ EVENTSTORE_URL: '' }, 'serve').ofEngines).toEqual({});
  expect(faulty({ ...production, FUEL_MASTER_KEY: '' })).toEqual(['FUEL_MASTER_KEY']);
});

describe('white space', () => {
  const full: Env = {
    ...production,
    FUEL_OPS_HOSTS: 'ops.example.com',
    FUEL_EDGE_TOKEN: 'edge-token-0123456789',
    FUEL_TRUSTED_PROXIES: '10.0.0.0/8',
    FUEL_OPERATOR_LOGIN: 'sam',
    FUEL_WEBHOOK_CA: '/ca.pem',
    FUEL_WEBHOOK_PROXY: 'http://proxy:3128',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=b',
    OTEL_SERVICE_NAME: 'fuel',
    OTEL_RESOURCE_ATTRIBUTES: 'c=d',
    FUEL_WEBHOOK_CLIENT_CERT: '/client.pem',
    FUEL_WEBHOOK_CLIENT_KEY: '/client-key.pem',
    EVENTSTORE_URL: 'esdb://a:2113',
    MONGODB_URL: 'mongodb://a',
    MONGODB_DATABASE: 'fuel',
    POSTGRES_URL: 'postgres://a',
    FUEL_POSTGRES_SCHEMA: 'fuel',
  };
  const invisible = ['\n', '\r\n', ' ', '\t', '\u0085', '\u00a0', '\u2028', '\u200b', '\u200f', '\ufeff'];

  test('around a value is cut, whatever setting it is', () => {
    const { settings } = showConfig({});
    for (const around of invisible) {
      const values = settings.map(({ name, value }) => [name, `${around}${full[name] ?? value}${around}`]);
      expect(loadConfig(Object.fromEntries(values), 'serve')).toEqual(loadConfig(full, 'serve'));
    }
  });

  test('alone counts as nothing', () => {
    for (const around of invisible)
      expect(faulty({ ...production, FUEL_MASTER_KEY: around })).toEqual(['FUEL_MASTER_KEY']);
  });

  test('around the commas of a list is cut', () => {
    const proxies = { FUEL_TRUSTED_PROXIES: '10.0.0.0/8 ,\n\u00a010.1.0.0/16,\u200b10.2.0.1\n' };
    expect(loadConfig(proxies, 'serve').FUEL_TRUSTED_PROXIES).toEqual([
      '10.0.0.0/8',
      '10.1.0.0/16',
      '10.2.0.1',
    ]);
  });
});

test('a control character inside a value is a fault of the setting by name, whatever setting it is', () => {
  for (const { name } of showConfig({}).settings) {
    for (const control of ['\u0000', '\u0007', '\u001b', '\u007f', '\u0085']) {
      const text = `${production[name] ?? 'mongodb://ab'}${control}c`;
      expect(showConfig({ [name]: text }).faults.join(), name).toContain(`${name}: must`);
    }
  }
  expect(faultsOf({ FUEL_IMAGES_REGION: 'eu\nwest' })).toEqual([
    'FUEL_IMAGES_REGION: must not contain the control character U+000A',
  ]);
});

test.each(['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover'])(
  'an event store is named by %s://, and by nothing longer or shorter',
  (scheme) => {
    expect(loadConfig({ EVENTSTORE_URL: `${scheme}://a:2113` }, 'command').ofEngines).toEqual({
      EVENTSTORE_URL: `${scheme}://a:2113`,
    });
    for (const other of [`${scheme}s://a:2113`, `${scheme}:a:2113`, `${scheme.slice(1)}://a:2113`]) {
      expect(faulty({ EVENTSTORE_URL: other })).toEqual(['EVENTSTORE_URL']);
    }
  },
);

test('the waits before attempts 2, 3, … are one to ten', () => {
  const waits = (text: string) =>
    loadConfig({ FUEL_WEBHOOK_RETRY_DELAYS: text }, 'serve').FUEL_WEBHOOK_RETRY_DELAYS;
  expect(waits('10ms, 2m')).toEqual([10, 120_000]);
  expect(waits('30s')).toEqual([30_000]);
  expect(waits('1s,2s,3s,4s')).toHaveLength(4);
  for (const text of ['30', Array(11).fill('1s').join(',')]) {
    expect(faulty({ FUEL_WEBHOOK_RETRY_DELAYS: text })).toEqual(['FUEL_WEBHOOK_RETRY_DELAYS']);
  }
});

describe('what must go together', () => {
  test('a certificate and its key are both set or neither', () => {
    expect(faulty({ FUEL_TLS_CERT: '/c' })).toEqual(['FUEL_TLS_CERT, FUEL_TLS_KEY']);
    expect(faulty({ FUEL_TLS_KEY: '/k' })).toEqual(['FUEL_TLS_CERT, FUEL_TLS_KEY']);
    expect(faulty({ FUEL_TLS_CERT: '/c', FUEL_TLS_KEY: '/k' })).toEqual([]);
  });

  test('behind a proxy that ends TLS, the proxies are named', () => {
    expect(faulty({ FUEL_TLS: 'terminated' })).toEqual(['FUEL_TRUSTED_PROXIES']);
    expect(faulty({ FUEL_TLS: 'terminated', FUEL_TRUSTED_PROXIES: '10.0.0.0/8' })).toEqual([]);
    expect(faulty({ FUEL_TLS: 'terminated', FUEL_TRUSTED_PROXIES: '0.0.0.0/0' })).toEqual([
      'FUEL_TRUSTED_PROXIES',
    ]);
  });

  test('an external edge has a token, of which none is short', () => {
    expect(faulty({ FUEL_EDGE: 'external' })).toEqual(['FUEL_EDGE_TOKEN']);
    const short = { FUEL_EDGE: 'external', FUEL_EDGE_TOKEN: 'edge-token-0123456789,short' };
    expect(faulty(short)).toContain('FUEL_EDGE_TOKEN');
    expect(faulty({ ...short, FUEL_EDGE_TOKEN: 'edge-token-0123456789' })).toEqual([]);
  });

  test('these rules hold for commands as for the service', () => {
    expect(faulty({ FUEL_EDGE: 'external' }, 'command')).toEqual(['FUEL_EDGE_TOKEN']);
  });
});

describe('in production', () => {
  test('the service starts with all that it needs', () => {
    expect(faultsOf(production)).toEqual([]);
  });

  const needed = Object.keys(production).filter((name) => name !== 'FUEL_ENVIRONMENT');

  test.each(needed)('the service needs %s, a command does not', (name) => {
    const pair = name.startsWith('FUEL_TLS_') ? ['FUEL_TLS_CERT', 'FUEL_TLS_KEY'] : [name];
    const env = without(production, ...pair);
    expect(faulty(env)).toEqual([pair.join(', ')]);
    expect(faulty(env, 'command')).toEqual([]);
  });

  test.each([
    ['api', ['FUEL_TLS_CERT, FUEL_TLS_KEY', ...PHOTOS]],
    ['projector', ['FUEL_SEAL_KEY']],
    ['webhooks', PHOTOS],
    ['notices', ['FUEL_SMTP_URL', 'FUEL_MAIL_FROM', 'FUEL_OPERATOR_EMAIL']],
  ] as const)('the role %s needs what it uses, and the master key', (role, names) => {
    expect(faulty({ FUEL_ENVIRONMENT: 'production' }, 'serve', [role]).toSorted()).toEqual(
      ['FUEL_MASTER_KEY', ...names].toSorted(),
    );
  });

  test('a secret that is missing is named with what makes one', () => {
    const faults = faultsOf({ FUEL_ENVIRONMENT: 'production' }, 'serve', ['projector']);
    expect(faults).toEqual([
      'FUEL_MASTER_KEY: must be set in production (make one with openssl rand -base64 32)',
      'FUEL_SEAL_KEY: must be set in production (make one with openssl genpkey -algorithm ed25519)',
    ]);
  });

  test('nothing of it is needed in staging', () => {
    expect(faulty({ FUEL_ENVIRONMENT: 'staging' })).toEqual([]);
  });

  test('a certificate is not needed where a proxy ends TLS', () => {
    const env = without(production, 'FUEL_TLS_CERT', 'FUEL_TLS_KEY');
    expect(faulty({ ...env, FUEL_TLS: 'terminated', FUEL_TRUSTED_PROXIES: '10.0.0.1' })).toEqual([]);
  });

  test('webhooks cannot be let into the own network, by a command neither', () => {
    const env = { ...production, FUEL_WEBHOOK_ALLOW_PRIVATE: 'true' };
    expect(faulty(env)).toEqual(['FUEL_WEBHOOK_ALLOW_PRIVATE']);
    expect(faulty(env, 'command')).toEqual(['FUEL_WEBHOOK_ALLOW_PRIVATE']);
    expect(loadConfig({ FUEL_WEBHOOK_ALLOW_PRIVATE: 'true' }, 'serve').FUEL_WEBHOOK_ALLOW_PRIVATE).toBe(true);
  });
});

test('every fault is named at once: of single settings, and of what does not go together', () => {
  expect(faulty({ FUEL_LISTEN: 'nowhere', FUEL_LOG_LEVEL: 'loud', FUEL_TLS_CERT: '/c' })).toEqual([
    'FUEL_LISTEN',
    'FUEL_LOG_LEVEL',
    'FUEL_TLS_CERT, FUEL_TLS_KEY',
  ]);
});

describe('what is shown', () => {
  const shown = (env: Env, name: string) => showConfig(env).settings.find((setting) => setting.name === name);

  test.each([
    ['FUEL_EDGE_TOKEN', 'edge-token-0123456789'],
    ['EVENTSTORE_URL', 'esdb://user:password@a'],
    ['MONGODB_URL', 'mongodb://user:password@a'],
    ['FUEL_MASTER_KEY', Buffer.alloc(32, 1).toString('base64')],
    ['FUEL_IMAGES_SECRET_ACCESS_KEY', 'the secret of the photo store'],
    ['FUEL_SMTP_URL', 'smtp://user:password@mail'],
  ])('%s is masked, also where it is not valid', (name, value) => {
    for (const text of [value, `?${value}`]) {
      const env = { [name]: text };
      expect(shown(env, name)).toMatchObject({ value: '********', source: 'environment' });
      expect(JSON.stringify(showConfig(env))).not.toContain(value);
    }
  });

  test('any other setting is shown with its source and its own fault', () => {
    const env = { FUEL_LISTEN: 'nowhere', FUEL_MAIL_FROM: 'fuel@example.com' };
    expect(shown(env, 'FUEL_MAIL_FROM')).toEqual({
      name: 'FUEL_MAIL_FROM',
      value: 'fuel@example.com',
      source: 'environment',
      fault: null,
    });
    expect(shown(env, 'FUEL_LISTEN')).toEqual({
      name: 'FUEL_LISTEN',
      value: 'nowhere',
      source: 'environment',
      fault: 'FUEL_LISTEN: must be host:port, such as 127.0.0.1:8443 or [::1]:8443',
    });
    expect(shown(env, 'FUEL_TLS_CERT')).toMatchObject({ value: null, source: 'unset' });
    expect(shown(env, 'FUEL_TLS')).toMatchObject({ value: 'served', source: 'default' });
  });

  test('the faults are those that keep the service from starting, its needs in production among them', () => {
    const env = without({ ...production, FUEL_LOG_LEVEL: 'loud' }, 'FUEL_SMTP_URL');
    expect(showConfig(env).faults).toEqual(faultsOf(env));
    expect(showConfig(env).faults).toHaveLength(2);
  });
});

test('a photo store’s URL with a password is refused, and the password is not shown', () => {
  for (const password of ['first-word', 'first/word']) {
    const env = { FUEL_IMAGES_ENDPOINT: `http://user:${password}@photos.example.com/` };
    const shown = showConfig(env);
    expect(shown.faults).toEqual([expect.stringMatching(/^FUEL_IMAGES_ENDPOINT: must be a URL/)]);
    expect(JSON.stringify(shown)).not.toContain(password);
  }
});
