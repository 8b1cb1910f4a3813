import { optional, secret, setting } from './setting.ts';
import * as read from './values.ts';

/** The maximum number of retry delays. Each one adds an attempt. */
const MAX_RETRIES = 10;

/** The settings that every process has, whatever its engines are. */
export const ownSettings = {
  FUEL_ENVIRONMENT: setting(
    'staging',
    read.oneOf('staging', 'production'),
    'The kind of this deployment: `staging` or `production`. In production every secret must be given.',
  ),
  FUEL_DATA_DIR: setting(
    './data',
    read.text,
    'The folder of the embedded files. It is created if it is missing. It and its files must belong to this user or root, and other users must not be able to write to it or read a file in it; a group of this user may (Kubernetes’ `fsGroup`).',
  ),
  FUEL_LISTEN: setting(
    '127.0.0.1:8443',
    read.address,
    'The address at which customers reach the API: `host:port` or `[::1]:8443`.',
  ),
  FUEL_TLS: setting(
    'served',
    read.oneOf('served', 'terminated'),
    '`served` by this process, or `terminated` by a proxy, which needs `FUEL_TRUSTED_PROXIES`.',
  ),
  FUEL_TLS_CERT: optional(
    read.text,
    'The PEM file of the API’s certificate, with `FUEL_TLS_KEY`. Staging generates both; production needs them if TLS is served.',
  ),
  FUEL_TLS_KEY: optional(read.text, 'The PEM file of that certificate’s private key.'),
  FUEL_OPS_LISTEN: setting(
    '127.0.0.1:9464',
    read.address,
    'The address at which operators reach the console, metrics and readiness: `host:port`.',
  ),
  FUEL_OPS_HOSTS: optional(
    read.list(read.hostName),
    'The host names under which [the console](console.md) answers, besides IP addresses and `localhost`, separated by commas.',
  ),
  FUEL_EDGE: setting(
    'embedded',
    read.oneOf('embedded', 'external'),
    'The part that checks allow-lists and rate limits: the `embedded` edge, or an `external` gateway, which needs `FUEL_EDGE_TOKEN`.',
  ),
  FUEL_EDGE_TOKEN: secret(
    optional(
      read.list(read.token),
      'The tokens by which the external gateway shows that it made these checks: at least 16 characters each, separated by commas.',
    ),
  ),
  FUEL_DIRECTORY_MAX_AGE: setting(
    '60s',
    read.duration,
    'How long customers are served without news from the event store: a number with `ms`, `s` or `m`.',
  ),
  FUEL_TRUSTED_PROXIES: optional(
    read.list(read.cidr),
    'The proxies whose statement of the customer’s address is believed: addresses or CIDR ranges, separated by commas. A range of all addresses is refused.',
  ),
  FUEL_MASTER_KEY: secret(
    optional(
      read.list(read.masterKey),
      'The keys that encrypt the webhooks’ secrets: 32 bytes in base64 each, separated by commas, the present one first. Staging generates one.',
    ),
  ),
  FUEL_SEAL_KEY: secret(
    optional(
      read.sealKeys,
      'The Ed25519 private key in PEM that signs [checkpoints](../audit.md) of the log. Lines may end in `\\n`, and former keys may follow it. Use the same on every machine with the role `projector`. Staging generates one.',
    ),
  ),
  FUEL_IMAGES_ENDPOINT: setting(
    'https://photos.example.com',
    read.urlWithoutCredentials('https:', 'http:'),
    'The photo store: an `https://` or `http://` URL, without user and password.',
  ),
  FUEL_IMAGES_REGION: setting('us-east-1', read.text, 'The region of the photo store.'),
  FUEL_IMAGES_BUCKET: setting('fuel-photos', read.text, 'The bucket of the photos.'),
  FUEL_IMAGES_ACCESS_KEY_ID: setting(
    'SAMPLEACCESSKEY',
    read.text,
    'The access key that signs the photos’ links.',
  ),
  FUEL_IMAGES_SECRET_ACCESS_KEY: secret(
    setting('sample-secret-access-key', read.text, 'The secret that belongs to this access key.'),
  ),
  FUEL_SMTP_URL: secret(
    optional(
      read.url('smtp:', 'smtps:'),
      'The mail server: an `smtp://` or `smtps://` URL. If it is not set, nothing is mailed, and the log names each notice by its ids.',
    ),
  ),
  FUEL_MAIL_FROM: optional(
    read.sender,
    'The sender of notices, such as `Fuel <fuel@example.com>`. If it is not set, it is the operator’s address.',
  ),
  FUEL_OPERATOR_EMAIL: optional(
    read.email,
    'The operator’s address, which gets every notice. If it is not set, only customers get notices.',
  ),
  FUEL_OPERATOR_LOGIN: optional(
    read.text,
    'The person who runs a command, recorded as `os_user` in events. Set it where the login name does not tell, as in a container.',
  ),
  FUEL_WEBHOOK_ALLOW_PRIVATE: setting(
    'false',
    read.boolean,
    '`true` allows webhooks to private addresses and any port. It is not possible in production.',
  ),
  FUEL_WEBHOOK_RETRY_DELAYS: setting(
    '30s,150s',
    retryDelays,
    'The waits before the attempts 2, 3, …, each ±10 %: one to ten numbers with `ms`, `s` or `m`, separated by commas.',
  ),
  FUEL_WEBHOOK_CA: optional(
    read.text,
    'A PEM file with further certificate authorities for receivers, roots or intermediates.',
  ),
  FUEL_WEBHOOK_CLIENT_CERT: optional(
    read.text,
    'The PEM file of [the certificate shown to receivers](#the-certificate-shown-to-receivers), with `FUEL_WEBHOOK_CLIENT_KEY`.',
  ),
  FUEL_WEBHOOK_CLIENT_KEY: optional(read.text, 'The PEM file of that certificate’s private key.'),
  FUEL_WEBHOOK_PROXY: secret(
    optional(
      read.proxy,
      'A forward proxy through which receivers are reached by `CONNECT`: `http://host:port` or `http://user:password@host:port`; see [the proxy](#the-proxy-for-webhooks).',
    ),
  ),
  FUEL_DELIVERY_RETENTION_DAYS: setting(
    '90',
    read.positiveInteger,
    'For how many days ended deliveries are kept, from 1; see [retention](customers.md#webhooks).',
  ),
  FUEL_REQUEST_LOG_DAYS: setting(
    '30',
    read.positiveInteger,
    'For how many days `fuel key requests` can list a request, from 1.',
  ),
  FUEL_STOP_DELAY: setting(
    '2s',
    read.duration,
    'How long a process with the role `api` that was told to end still takes requests: a number with `ms`, `s` or `m`.',
  ),
  FUEL_LOG_LEVEL: setting(
    'info',
    read.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'The lowest level that is logged: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    read.urlWithoutCredentials('http:', 'https:'),
    'The OpenTelemetry collector that gets [traces](watching.md#traces) by OTLP over HTTP, such as `http://127.0.0.1:4318`. If it is not set, nothing of OpenTelemetry is loaded.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    optional(read.text, 'Headers for the collector: `name=value`, separated by commas.'),
  ),
  OTEL_SERVICE_NAME: optional(read.text, 'The name of the service in traces; `fuel-integration` if not set.'),
  OTEL_RESOURCE_ATTRIBUTES: optional(
    read.text,
    'Further attributes of the service in traces: `name=value`, separated by commas.',
  ),
  OTEL_TRACES_SAMPLER: setting(
    'parentbased_always_on',
    read.oneOf(
      ...(['always_on', 'always_off', 'traceidratio'] as const),
      ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
    ),
    'Which traces are exported: `always_on`, `always_off` or `traceidratio`. With `parentbased_` before it each means the same, since no trace begins elsewhere.',
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    '1',
    read.ratio,
    'The part of all traces with `traceidratio`, from 0 to 1.',
  ),
} as const;

/** The roles that a process can have. By default it has all of them. */
export const ROLES = ['api', 'projector', 'webhooks', 'notices'] as const;
export type Role = (typeof ROLES)[number];

/** The settings that each role requires in production. A secret is only given to the processes that use it. */
export const NEEDED_IN_PRODUCTION: readonly (readonly [
  readonly Role[],
  readonly (keyof typeof ownSettings)[],
])[] = [
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
export const MADE_WITH: Readonly<Partial<Record<keyof typeof ownSettings, string>>> = {
  FUEL_MASTER_KEY: 'openssl rand -base64 32',
  FUEL_SEAL_KEY: 'openssl genpkey -algorithm ed25519',
};

function retryDelays(text: string): readonly number[] {
  const delays = read.list(read.duration)(text);
  if (delays.length > MAX_RETRIES)
    throw new Error(`must be at most ${MAX_RETRIES} waits, before attempts 2, 3, …, such as 30s,150s`);
  return delays;
}
