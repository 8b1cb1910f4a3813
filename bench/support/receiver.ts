import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { machineTimeMs } from './machine-time.ts';

/** A request that arrived at one of the webhook receivers of this process. Each has its own port and answers 200. */
export interface Arrival {
  /** The number of the receiver, from 0. */
  readonly receiver: number;
  /** The delivery id in the body. */
  readonly id: string;
  /** When the head of the request had arrived, by the machine's clock. */
  readonly atMs: number;
  /** The request, while requests are kept. */
  readonly request?: KeptRequest;
}

export interface KeptRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Order =
  /** Hand over the arrivals since the last time, as soon as there are this many. */
  | { readonly kind: 'take'; readonly count: number }
  | { readonly kind: 'keep requests'; readonly keep: boolean }
  /** Accept connections from now on, but never answer. */
  | { readonly kind: 'hang'; readonly receiver: number };

export type News =
  | { readonly kind: 'listening'; readonly ports: readonly number[] }
  | { readonly kind: 'arrived'; readonly arrivals: readonly Arrival[] };

const HOST = '127.0.0.1';
const ID = /^\{"id":"([0-9a-f-]{36})"/;
const [certificateFile = '', keyFile = '', count = '1'] = process.argv.slice(2);

let arrivals: Arrival[] = [];
let wanted = Infinity;
let keeping = false;
const hanging = new Set<number>();
const tell = (news: News): void => void process.send?.(news);

function handOver(): void {
  if (arrivals.length < wanted) return;
  tell({ kind: 'arrived', arrivals });
  arrivals = [];
  wanted = Infinity;
}

function receive(receiver: number, request: IncomingMessage, response: ServerResponse): void {
  const atMs = machineTimeMs();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (hanging.has(receiver)) return;
    const body = Buffer.concat(chunks).toString();
    const id = ID.exec(body)?.[1] ?? 'no id';
    arrivals.push({ receiver, id, atMs, ...(keeping ? { request: kept(request, body) } : {}) });
    response.writeHead(200).end();
    handOver();
  });
}

/** Returns the request without the headers of the connection. */
function kept({ headers }: IncomingMessage, body: string): KeptRequest {
  const { host: _host, connection: _connection, 'content-length': _length, ...own } = headers;
  return { headers: own as Record<string, string>, body };
}

function obey(order: Order): void {
  if (order.kind === 'keep requests') keeping = order.keep;
  else if (order.kind === 'hang') hanging.add(order.receiver);
  else {
    wanted = order.count;
    handOver();
  }
}

process.on('message', obey);
process.once('disconnect', () => process.exit());
const tls = { cert: readFileSync(certificateFile), key: readFileSync(keyFile) };
const listening = Array.from({ length: Number(count) }, (_, receiver) => {
  const server = createServer(tls, (request, response) => receive(receiver, request, response));
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, HOST, () => resolve((server.address() as AddressInfo).port));
  return promise;
});
tell({ kind: 'listening', ports: await Promise.all(listening) });
