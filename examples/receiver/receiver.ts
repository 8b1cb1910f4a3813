import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { Ledger, LedgerError } from '../ledger/ledger.ts';
import { parseExactly, type Transaction } from '../ledger/transaction.ts';

const TOLERANCE_SECONDS = 5 * 60;
const MAX_BODY_BYTES = 256 * 1024;
const SIGNATURE = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

export interface ReceiverOptions {
  /** The valid webhook secrets, as the operator gave them to you. There are two while you change keys. */
  readonly secrets: readonly string[];
  /** The certificate, in PEM. */
  readonly cert: string;
  readonly key: string;
  readonly ledger: Ledger;
  /** How many of the first requests are answered with 503, for tests. */
  readonly failFirst?: number;
  /** Called after the answer to each accepted event. */
  readonly onEvent?: (event: WebhookEvent, outcome: 'stored' | 'stored before' | 'ignored') => void;
  /** Called with each request that is not accepted, and the reason. */
  readonly onRefused?: (status: number, reason: string) => void;
}

export interface WebhookEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly api_version: string;
  readonly data: { readonly transaction?: Transaction };
}

export interface Receiver {
  readonly server: Server;
  /** Answers the next `count` requests with 503. */
  failNext(count: number): void;
}

/** The reason why a request is refused, for the log. The sender is not told. */
export type Verdict = 'genuine' | 'the signature is not genuine' | 'the signature is too old or too new';

/** Says whether one of the secrets signed the raw bytes, not too long ago. The comparison takes constant time. */
export function judge(header: string, rawBody: Buffer, secrets: readonly string[]): Verdict {
  const [, t, v1] = SIGNATURE.exec(header) ?? [];
  if (t === undefined || v1 === undefined) return 'the signature is not genuine';
  const isSigned = secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(`${t}.`).update(rawBody).digest();
    return timingSafeEqual(expected, Buffer.from(v1, 'hex'));
  });
  if (!isSigned) return 'the signature is not genuine';
  const isFresh = Math.abs(Date.now() / 1000 - Number(t)) <= TOLERANCE_SECONDS;
  return isFresh ? 'genuine' : 'the signature is too old or too new';
}

/** Returns the secrets without the white space around them. Anybody could sign with an empty one, so it is dropped. */
function usable(secrets: readonly string[]): string[] {
  const found = secrets.map((secret) => secret.trim()).filter((secret) => secret !== '');
  if (found.length === 0)
    throw new SettingError('WEBHOOK_SECRET is empty: set it to the secret that you got with your key');
  return found;
}

/**
 * Creates an HTTPS server that receives webhooks on any path. It verifies, stores, then answers; slow work comes later.
 * Throws if every secret is empty.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { cert, key, ledger, failFirst = 0, onEvent, onRefused } = options;
  const secrets = usable(options.secrets);
  let failuresLeft = failFirst;

  function receive(header: string, rawBody: Buffer): { status: number; after: () => void } {
    const refuse = (status: number, reason: string) => ({ status, after: () => onRefused?.(status, reason) });
    const verdict = judge(header, rawBody, secrets);
    if (verdict !== 'genuine') return refuse(401, verdict);
    if (failuresLeft > 0) {
      failuresLeft -= 1;
      return refuse(503, 'FAIL_FIRST is set');
    }
    try {
      const event = parseExactly(rawBody.toString('utf8')) as WebhookEvent;
      const { transaction } = event.data;
      // New types may be added. Accept and ignore them.
      const isTransaction = transaction !== undefined && event.type.startsWith('transaction.');
      const outcome = isTransaction ? ledger.receive(event.id, transaction) : 'ignored';
      return { status: 204, after: () => onEvent?.(event, outcome) };
    } catch (error) {
      // It will be sent again. The reason is in the log of this program, not in the answer.
      return refuse(503, `it could not be stored: ${(error as Error).message}`);
    }
  }

  const server = createServer({ cert, key }, (request, response) => void answer(request, response));

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const rawBody = await readBody(request).catch(() => undefined); // the sender ended the connection
    if (rawBody === undefined) return;
    if (rawBody === 'too large') {
      response.writeHead(413, { Connection: 'close' }).end();
      return;
    }
    const { status, after } = receive(`${request.headers['x-service-signature']}`, rawBody);
    response.writeHead(status).end(after);
  }

  return {
    server,
    failNext(count) {
      failuresLeft += count;
    },
  };
}

/** Reads the exact bytes. If they were parsed and printed again, the signature would not match. */
async function readBody(request: IncomingMessage): Promise<Buffer | 'too large'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return 'too large';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A setting that is missing or wrong. */
class SettingError extends Error {}

/** Runs the receiver with the settings from the environment until SIGTERM or Ctrl-C: see README.md. */
function main(env: NodeJS.ProcessEnv): void {
  const { WEBHOOK_SECRET, TLS_CERT, TLS_KEY, DATABASE = 'fuel.db', PORT = '8444', FAIL_FIRST = '0' } = env;
  if (!WEBHOOK_SECRET || !TLS_CERT || !TLS_KEY) {
    throw new SettingError('set WEBHOOK_SECRET, TLS_CERT and TLS_KEY (PEM files): see README.md');
  }
  const secrets = usable(WEBHOOK_SECRET.split(','));
  const certificate = () => ({ cert: readPem('TLS_CERT', TLS_CERT), key: readPem('TLS_KEY', TLS_KEY) });
  const ledger = new Ledger(DATABASE);
  const { server } = createReceiver({
    secrets,
    ...certificate(),
    ledger,
    failFirst: Number(FAIL_FIRST),
    onEvent: ({ type, id, data }, outcome) =>
      process.stdout.write(
        `${[type, data.transaction?.id, 'delivery'].filter(Boolean).join(' ')} ${id}: ${outcome}\n`,
      ),
    onRefused: (status, reason) => process.stderr.write(`answered ${status}: ${reason}\n`),
  });
  server.on('error', (error) => fail(error));
  server.listen(Number(PORT), () => process.stdout.write(`listening on port ${PORT}\n`));
  process.on('SIGHUP', () => {
    try {
      server.setSecureContext(certificate());
    } catch (error) {
      process.stderr.write(`receiver: the old certificate stays in use: ${(error as Error).message}\n`);
    }
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      server.close(() => ledger.close());
      server.closeIdleConnections();
    });
  }
}

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new SettingError(`${setting}: ${(error as Error).message}`);
  }
}

function fail(error: unknown): void {
  const isKnown = error instanceof SettingError || error instanceof LedgerError;
  const { code, message } = error as NodeJS.ErrnoException;
  if (!isKnown && code === undefined) throw error;
  process.stderr.write(`receiver: ${message}\n`);
  process.exit(error instanceof SettingError ? 2 : 1);
}

if (import.meta.main) {
  try {
    main(process.env);
  } catch (error) {
    fail(error);
  }
}
