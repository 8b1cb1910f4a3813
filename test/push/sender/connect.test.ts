import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Connected, connectToAny, errorDetail, StartGate } from '../../../src/push/sender/connect.ts';
import { trustedAuthorities } from '../../../src/push/sender/trusted-authorities.ts';
import { receiverTrust } from '../../support/deliveries/test-sender.ts';
import { openReceiver, type TlsReceiver } from '../../support/deliveries/tls-receiver.ts';

const { certificate } = receiverTrust();

/** Addresses of this machine: 127.0.0.2 and so on. */
const local = (count: number): string[] => Array.from({ length: count }, (_, n) => `127.0.0.${n + 2}`);

/** Opens a connection to one of the addresses, closed when the test is over. */
async function connect(
  port: number,
  addresses: readonly string[],
  signal = new AbortController().signal,
): Promise<Connected> {
  const target = {
    url: 'https://hook.test/',
    origin: `https://hook.test:${port}`,
    host: 'hook.test',
    port,
    path: '/',
  };
  const secureContext = trustedAuthorities(certificate().cert);
  const sessions = new LRUCache<string, Buffer>({ max: 1 });
  const connected = await connectToAny({
    target,
    addresses,
    secureContext,
    sessions,
    signal,
    onStep: () => undefined,
  });
  onTestFinished(() => void (connected.ok && connected.socket.destroy()));
  return connected;
}

const receiver = (): Promise<TlsReceiver> => openReceiver(certificate(), () => undefined);

/** Accepts connections at an address, and treats each as given: not at all by default. */
async function acceptAt(
  address: string,
  port: number,
  onConnection: (socket: Socket) => void = () => undefined,
): Promise<{ readonly port: number; readonly sockets: readonly Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // the other side breaks connections off
    sockets.push(socket.resume());
    onConnection(socket);
  }).listen(port, address);
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

const speakPlainly = (socket: Socket): void => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');

describe('of several addresses', () => {
  test('the last of 16 is tried in time, although none before it ever answers', async () => {
    const { port } = await receiver();
    const silent = local(15);
    for (const address of silent) await acceptAt(address, port);
    const startedAt = performance.now();
    expect(await connect(port, [...silent, '127.0.0.1'])).toMatchObject({ ok: true, address: '127.0.0.1' });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  test('no more than 16 are tried', async () => {
    const { port } = await receiver();
    expect(await connect(port, [...local(15), '127.0.0.1'])).toMatchObject({ ok: true });
    expect(await connect(port, [...local(16), '127.0.0.1'])).toMatchObject({ ok: false, kind: 'connect' });
  });

  test('where all fail, the failure of the first is reported', async () => {
    const { port } = await acceptAt('127.0.0.2', 0, speakPlainly);
    expect(await connect(port, ['127.0.0.2', '127.0.0.3'])).toMatchObject({ ok: false, kind: 'tls' });
    expect(await connect(port, ['127.0.0.3', '127.0.0.2'])).toMatchObject({ ok: false, kind: 'connect' });
  });

  test('those that are not used are closed', async () => {
    const { port } = await receiver();
    const silent = await acceptAt('127.0.0.2', port);
    expect(await connect(port, ['127.0.0.2', '127.0.0.1'])).toMatchObject({ ok: true, address: '127.0.0.1' });
    const [left] = silent.sockets;
    if (left?.closed === false) await once(left, 'close');
    expect(silent.sockets).toHaveLength(1);
  });

  test('no more are tried when the signal aborts, and started ones are closed', async () => {
    const later = await acceptAt('127.0.0.3', 0);
    const first = await acceptAt('127.0.0.2', later.port, () => stopping.abort());
    const stopping = new AbortController();
    void connect(later.port, ['127.0.0.2', '127.0.0.3'], stopping.signal);
    await once(stopping.signal, 'abort');
    const [begun] = first.sockets;
    if (begun?.closed === false) await once(begun, 'close');
    await new Promise((resolve) => setTimeout(resolve, 150)); // past the head start of the first
    expect(later.sockets).toHaveLength(0);
  });
});

test('a receiver gets its name by SNI, and HTTP/1.1 by ALPN', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const { port } = await openReceiver(certificate(), ({ socket }) =>
    resolve([(socket as { servername?: unknown }).servername, socket.alpnProtocol]),
  );
  const connected = await connect(port, ['127.0.0.1']);
  if (!connected.ok) throw new Error(connected.detail);
  connected.socket.write('GET / HTTP/1.1\r\n\r\n');
  expect(await promise).toEqual(['hook.test', 'http/1.1']);
});

test('an error is described in one line of at most 300 characters, with its code once', () => {
  const error = (message: string, code?: string) => Object.assign(new Error(message), { code });
  expect(errorDetail(error('connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED'))).toBe(
    'connect ECONNREFUSED 127.0.0.1:1',
  );
  expect(errorDetail(error(' it is\n  broken ', 'E_BROKEN'))).toBe('E_BROKEN: it is broken');
  expect(errorDetail(error('no code'))).toBe('no code');
  expect(errorDetail(error('SSL routines:…:SSL alert number 116\n', 'ERR_SSL_TLSV13_ALERT'))).toBe(
    'ERR_SSL_TLSV13_ALERT: the receiver demands a client certificate, and none was shown',
  );
  expect(errorDetail(error('x'.repeat(1_000)))).toBe('x'.repeat(300));
});

test('eight start in a turn, the others in later turns, in their order', async () => {
  const gate = new StartGate();
  const started: number[] = [];
  for (let index = 0; index < 20; index++) void gate.pass().then(() => started.push(index));
  await Promise.resolve();
  expect(started).toHaveLength(8);
  await nextTurn();
  expect(started).toHaveLength(16);
  await nextTurn();
  expect(started).toEqual(Array.from({ length: 20 }, (_, index) => index));
});

test('after a turn in which none had to wait eight may start again', async () => {
  const gate = new StartGate();
  for (let turn = 0; turn < 3; turn++) {
    let started = 0;
    for (let index = 0; index < 8; index++) void gate.pass().then(() => started++);
    await Promise.resolve();
    expect(started).toBe(8);
    await nextTurn();
    await nextTurn();
  }
});
