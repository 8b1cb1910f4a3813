import { once } from 'node:events';
import { standardSecret } from '../../../accounts/key-text.ts';
import { systemClock } from '../../../base/clock.ts';
import type { Mock, MockOptions } from '../../../customers/mock/mock.ts';
import { KINDS } from '../../../customers/mock/mock-webhooks.ts';
import { DAY_MS, formatDateTime } from '../../../domain/values/date-time.ts';
import { readId } from '../../answers/filters.ts';
import { leaf } from '../command/command.ts';
import * as option from '../command/options.ts';
import { abortOnInterrupt, Output } from '../command/output.ts';

const CA_VARIABLES = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS'];
const DEFAULT_SEED = 1;
const DEFAULT_PORT = 8450;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * DAY_MS;
const MAX_PORT = 65_534; // the control listener has the next one

export const addMockCommand = leaf({
  name: 'mock',
  summary: "serve the API on generated data and send webhooks on demand, for a customer's own tests",
  example: `fuel mock --seed 7 --port 8450

Prints:
  --json     base_url, ca_file, key, webhook_secret, webhook_secret_standard, second_key, second_webhook_secret,
             second_webhook_secret_standard, control_url, from, to, transactions
  otherwise  exports of BASE_URL, API_KEY, WEBHOOK_SECRET, WEBHOOK_SECRET_STANDARD, SECOND_API_KEY,
             SECOND_WEBHOOK_SECRET, SECOND_WEBHOOK_SECRET_STANDARD, MOCK, FROM, WEEK, TO, and of the CA file
             for most languages as SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE and NODE_EXTRA_CA_CERTS`,
  syntax: (it) =>
    it
      .option(
        '--seed <n>',
        'the same seed gives the same transactions, key and secret; only the times differ',
        readId,
        DEFAULT_SEED,
      )
      .option(
        '--port <n>',
        'the port of the API; the next port controls the mock; 0: any free ports',
        readPort,
        DEFAULT_PORT,
      )
      .option(...option.JSON_OPTION),
  run: (_, { json, ...options }) => {
    const nowMs = systemClock.now();
    return serveMock({ ...options, toMs: nowMs - (nowMs % HOUR_MS) }, new Output(json === true));
  },
});

/** Runs until SIGTERM, SIGINT or SIGHUP (exit 0), or until a part fails. */
async function serveMock(options: MockOptions, out: Output): Promise<void> {
  const signal = abortOnInterrupt();
  const { startMock } = await import('../../../customers/mock/mock.ts'); // loads the servers, which no other command needs
  const mock = await startMock(options);
  try {
    if (!signal.aborted) {
      show(mock, out);
      await Promise.race([once(signal, 'abort'), mock.failed]);
    }
  } finally {
    await mock.stop();
  }
}

function show({ data, baseUrl, caFile, controlUrl }: Mock, out: Output): void {
  const { key, webhookSecret, second, shown } = data;
  const [from, week, to] = [data.fromMs, data.toMs - WEEK_MS, data.toMs].map(formatDateTime);
  const document = {
    base_url: baseUrl,
    ca_file: caFile,
    key,
    webhook_secret: webhookSecret,
    webhook_secret_standard: standardSecret(webhookSecret),
    control_url: controlUrl,
    second_key: second.key,
    second_webhook_secret: second.webhookSecret,
    second_webhook_secret_standard: standardSecret(second.webhookSecret),
    from,
    to,
    transactions: shown.size,
  };
  const kinds = Object.entries(KINDS).map(([kind, { what }]) => `#   ${kind.padEnd(13)}  ${what}`);
  const text = [
    '# Paste these lines into the shell in which you try your programs:',
    `export BASE_URL=${baseUrl}`,
    `export API_KEY=${key}`,
    `export WEBHOOK_SECRET=${webhookSecret} WEBHOOK_SECRET_STANDARD=${standardSecret(webhookSecret)}`,
    `export SECOND_API_KEY=${second.key} SECOND_WEBHOOK_SECRET=${second.webhookSecret}`,
    `export SECOND_WEBHOOK_SECRET_STANDARD=${standardSecret(second.webhookSecret)}`,
    `export ${CA_VARIABLES.map((name) => `${name}='${caFile}'`).join(' ')}`,
    '# Java has a trust store of its own:',
    '#   rm -f trust.p12',
    '#   keytool -importcert -noprompt -alias service -file "$SSL_CERT_FILE" -keystore trust.p12 -storepass changeit',
    '#   export JAVA_TOOL_OPTIONS="-Djavax.net.ssl.trustStore=$PWD/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"',
    '# So has the curl of PHP:',
    '#   php -d curl.cainfo="$SSL_CERT_FILE" YOUR_PROGRAM.php',
    `export MOCK=${controlUrl}`,
    `export FROM=${from} WEEK=${week} TO=${to}`,
    '',
    `# ${shown.size} transactions were created in that time.`,
    '# Ask for a webhook to your receiver:',
    '#   curl "$MOCK/send" -d kind=good -d url=https://localhost:8444/fuel-events',
    '# Kinds:',
    ...kinds,
    '# Void a transaction, so that the API no longer shows it:',
    `#   curl "$MOCK/void" -d transaction=${[...shown.keys()].at(-1)}`,
    '# Add transactions, also late ones, make pull requests fail, and see what a ledger should hold:',
    '#   curl "$MOCK/new" -d kind=confirmed -d count=3',
    '#   curl "$MOCK/new" -d kind=external -d days_ago=40',
    '#   curl "$MOCK/fail" -d status=cut -d times=2',
    '#   curl "$MOCK/transactions"',
    '# Ctrl-C ends it and leaves no files behind.',
  ];
  out.result(document, text.join('\n'));
}

function readPort(text: string): number {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (port <= MAX_PORT) return port;
  throw option.usage(`must be an integer from 0 to ${MAX_PORT}`);
}
