import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeCertificate } from '../certificate.ts';
import { atEndOfFile } from '../end-of-file.ts';
import { expectDocumentedDelivery } from '../openapi/validate.ts';
import { until } from '../waiting.ts';

/** A request as a customer's server sees it. */
export interface Hook {
  readonly atMs: number;
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the body as a customer's program would
  readonly body: any;
}

export type HookAnswer = (response: ServerResponse, hook: Hook) => void | Promise<void>;

export const answerWith =
  (status: number, body = '', headers: Readonly<Record<string, string>> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);

const servers: Server[] = [];
const undocumented: unknown[] = [];

atEndOfFile(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  const [first] = undocumented.splice(0);
  if (first !== undefined) throw first;
});

/**
 * A customer's HTTPS server. Each path has its own answers, 200 by default. The tests of the file fail if a request is
 * not as docs/openapi.yaml describes it.
 */
export class WebhookReceiver {
  readonly hooks: Hook[] = [];
  readonly ca: string;
  readonly #answers = new Map<string, HookAnswer>();
  readonly #port: number;

  private constructor(ca: string, port: number) {
    this.ca = ca;
    this.#port = port;
  }

  /** Opens a receiver that lives until the tests of the file are over. */
  static async open(): Promise<WebhookReceiver> {
    const { cert, key } = await makeCertificate();
    const server = createServer({ cert, key });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const receiver = new WebhookReceiver(cert, (server.address() as AddressInfo).port);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('error', () => undefined); // the sender breaks off when its time is up
      response.on('error', () => undefined);
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const { url: path = '', method = '', headers } = request;
        const hook = { atMs: Date.now(), path, method, headers, text, body: JSON.parse(text) };
        receiver.hooks.push(hook);
        const answer = receiver.#answers.get(path) ?? answerWith(200, 'ok');
        void answer(response, hook);
        noteUndocumented(hook); // after the answer, since the sender counts the milliseconds until then
      });
    });
    servers.push(server);
    return receiver;
  }

  url(path: string): string {
    return `https://localhost:${this.#port}${path}`;
  }

  answer(path: string, answer: HookAnswer): void {
    this.#answers.set(path, answer);
  }

  /** The ids of the deliveries that have come. On a busy machine an answer may be late, and the same one comes again. */
  deliveriesTo(path: string): ReadonlySet<string> {
    return new Set(this.to(path).map(({ body }) => body.id));
  }

  to(path: string): Hook[] {
    return this.hooks.filter((hook) => hook.path === path);
  }

  /** Waits until the path has had this many requests. */
  async received(path: string, count: number, withinMs = 15_000): Promise<Hook[]> {
    await until(() => this.to(path).length >= count, withinMs);
    return this.to(path);
  }
}

function noteUndocumented(hook: Hook): void {
  try {
    expectDocumentedDelivery(hook);
  } catch (error) {
    undocumented.push(error);
  }
}

/** Reads `t` (in seconds) and the signature from a request, as the customer's guide says. */
export function readSignature(hook: Hook): { readonly t: number; readonly v1: string } {
  const match = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(hook.headers['x-service-signature']));
  if (match === null) throw new Error(`not a signature: ${hook.headers['x-service-signature']}`);
  return { t: Number(match[1]), v1: String(match[2]) };
}

export const signatureOf = (secret: string, t: number, text: string): string =>
  createHmac('sha256', secret).update(`${t}.${text}`).digest('hex');

/** Removes what may change between attempts. */
export const withoutImages = (text: string): string => text.replace(/"images":\{[^}]*\}/, '"images":{}');
