import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { FuelError } from '../errors.ts';
import { listen } from '../listen.ts';
import { type Log, silentLog } from '../log.ts';
import { KINDS, type Kind } from './mock-webhooks.ts';
import type { SentWebhook } from './send-mock.ts';

const HOST = '127.0.0.1';
/** Sent by browsers: a page that the user visits must not be able to ask for anything. */
const HEADERS_OF_A_PAGE = ['origin', 'sec-fetch-site'];
const STATUS = { done: 200, refused: 400, unknown: 404, failed: 500 } as const;

export interface Controls {
  /** Sends webhooks of a kind. Rejects with `REFUSED` or `USAGE` where that is not possible. */
  send(wish: { kind: Kind; url: string; transactionId: number | undefined }): Promise<SentWebhook[]>;
  /** Voids a transaction and resolves once the API does not show it any more. Rejects with `REFUSED`. */
  void(transactionId: number): Promise<void>;
}

export interface ControlServer {
  readonly url: string;
  stop(): void;
}

/** What asks the mock for webhooks and voids, in plain HTTP on this machine alone. Answers are JSON. */
export async function startControlServer(
  controls: Controls,
  port: number,
  log: Log = silentLog,
): Promise<ControlServer> {
  const server = createServer(async (request, response) => {
    try {
      answer(response, STATUS.done, await handle(controls, request));
    } catch (error) {
      const { status, message } = refusalOf(error);
      if (status === STATUS.failed) log.error({ err: error }, 'the mock failed');
      answer(response, status, { error: message });
    }
  });
  const address = await listen(server, { host: HOST, port });
  return {
    url: `http://${HOST}:${address.port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

class UnknownPath extends Error {}

async function handle(controls: Controls, request: IncomingMessage): Promise<unknown> {
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${HOST}`);
  const isKnown = pathname === '/send' || pathname === '/void';
  const isFromAPage = HEADERS_OF_A_PAGE.some((name) => request.headers[name] !== undefined);
  if (!isKnown || request.method !== 'POST' || isFromAPage) {
    throw new UnknownPath('ask with POST /send?kind=…&url=… or POST /void?transaction=…');
  }
  const names = pathname === '/send' ? ['kind', 'url', 'transaction'] : ['transaction'];
  for (const name of searchParams.keys()) {
    if (!names.includes(name) || searchParams.getAll(name).length > 1) {
      throw new FuelError(
        'USAGE',
        `${name}: an unknown or repeated parameter; there are ${names.join(', ')}`,
      );
    }
  }
  const transactionId = readId(searchParams.get('transaction'));
  if (pathname === '/void') {
    if (transactionId === undefined) throw new FuelError('USAGE', 'transaction: missing, the id to void');
    await controls.void(transactionId);
    return { voided: transactionId };
  }
  const kind = readKind(searchParams.get('kind'));
  const url = readUrl(searchParams.get('url'));
  return { sent: await controls.send({ kind, url, transactionId }) };
}

function readKind(text: string | null): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => name === text);
  if (kind === undefined)
    throw new FuelError('USAGE', `kind: must be one of ${Object.keys(KINDS).join(', ')}`);
  return kind;
}

function readUrl(text: string | null): string {
  const url = text === null ? null : URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new FuelError('USAGE', 'url: must be the URL of your receiver, with https:// or http://');
  }
  return url.href;
}

function readId(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new FuelError('USAGE', 'transaction: must be an id');
  return Number(text);
}

function refusalOf(error: unknown): { status: number; message: string } {
  if (error instanceof UnknownPath) return { status: STATUS.unknown, message: error.message };
  if (error instanceof FuelError && (error.code === 'USAGE' || error.code === 'REFUSED')) {
    return { status: STATUS.refused, message: error.message };
  }
  return { status: STATUS.failed, message: error instanceof Error ? error.message : String(error) };
}

function answer(response: ServerResponse, status: number, document: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(document)}\n`);
}
