import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { machineTimeMs } from './machine-time.ts';

/** A process of webhook receivers, each with a port of its own: answers 200 and notes what arrived. */
export interface Arrival {
  /** Its number, from 0. */
  readonly receiver: number;
  /** The delivery id, read off the body. */
  readonly id: string;
  /** When the request's head was there, by the machine's clock. */
  readonly atMs: number;
  /** Only while requests are kept. */
  readonly request?: KeptRequest;
}

export interface KeptRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Order =
  /** Hand over what arrived since the last time, as soon as it is this many. */
  | { readonly kind: 'take'; readonly count: number }
  | { readonly kind: 'keep requests'; readonly keep: boolean }
  /** From now on, accept and never answer. */
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

/** Without what the connection adds of itself. */
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
