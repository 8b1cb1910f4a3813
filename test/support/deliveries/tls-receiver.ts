import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { generate } from 'selfsigned';
import { onTestFinished } from 'vitest';
import type { SendRequest } from '../../../src/push/sender/timed-send.ts';

/** A certificate that is its own authority: a client that trusts `cert` trusts a receiver that uses it. */
export interface ReceiverCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes a certificate for 127.0.0.1 and these names. */
export async function receiverCertificate(
  names: readonly string[] = ['localhost', 'hook.test'],
  validity: { readonly notBefore?: Date; readonly notAfter?: Date } = {},
): Promise<ReceiverCertificate> {
  const made = await generate([{ name: 'commonName', value: names[0] ?? 'none' }], {
    keyType: 'ec',
    ...(validity.notBefore === undefined ? {} : { notBeforeDate: validity.notBefore }),
    ...(validity.notAfter === undefined ? {} : { notAfterDate: validity.notAfter }),
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          ...names.map((value) => ({ type: 2 as const, value })),
          { type: 7 as const, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  return { cert: made.cert, key: made.private };
}

export interface ReceivedRequest {
  readonly head: string;
  readonly body: string;
  readonly socket: TLSSocket;
  /** Resets the connection. */
  reset(): void;
  /** The number of the connection to the receiver, and of the request on it, each from 1. */
  readonly connection: number;
  readonly number: number;
}

export interface TlsReceiver {
  readonly port: number;
  readonly url: string;
  readonly requests: ReceivedRequest[];
  connections(): number;
  /** Resolves when the connection with this number has closed. */
  closed(connection: number): Promise<unknown>;
}

export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Starts a TLS server that hands each complete request to `answer`, which writes any bytes. */
export async function openReceiver(
  certificate: ReceiverCertificate,
  answer: (request: ReceivedRequest) => void,
  options: TlsOptions = {},
): Promise<TlsReceiver> {
  const requests: ReceivedRequest[] = [];
  const sockets: TLSSocket[] = [];
  const closings: Promise<unknown>[] = [];
  const raw = new Map<number | undefined, Socket>();
  const server = createTlsServer({ ...options, ...certificate, ALPNProtocols: ['http/1.1'] }, (socket) => {
    const connection = sockets.push(socket);
    closings.push(new Promise((resolve) => socket.once('close', resolve)));
    let text = '';
    let number = 0;
    socket.setNoDelay(true);
    socket.on('error', () => undefined); // the sender breaks off connections; `close` follows
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const [head = '', body] = text.split('\r\n\r\n', 2);
      if (body === undefined || Buffer.byteLength(body) < contentLength(head)) return;
      text = '';
      number += 1;
      const reset = (): void => void raw.get(socket.remotePort)?.resetAndDestroy();
      const request = { head, body, socket, reset, connection, number };
      requests.push(request);
      answer(request);
    });
  });
  server.on('connection', (socket: Socket) => raw.set(socket.remotePort, socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://localhost:${port}/hook?a=1`,
    requests,
    connections: () => sockets.length,
    closed: (connection) => closings[connection - 1] ?? Promise.reject(new Error('no such connection')),
  };
}

export function sendRequest(url: string, body = '{"id":1}'): SendRequest {
  return { url, headers: { 'Content-Type': 'application/json', 'X-Service-Event': 'webhook.test' }, body };
}

function contentLength(head: string): number {
  return Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
}
