import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** An attack on the API at `port`, which lasts until it is stopped. Paths contain the query. */
export type Attack = { readonly port: number } & (
  | {
      /** Sends `requests` on each connection, the keys in turn, always many ahead of the answers, which it reads. */
      readonly kind: 'flood';
      readonly keys: readonly string[];
      readonly path: string;
      readonly connections: number;
      readonly requests: number;
    }
  | {
      /** Sends `requests` on each connection in one piece, the keys in turn, and then reads this slowly. */
      readonly kind: 'unread';
      readonly keys: readonly string[];
      readonly path: string;
      readonly connections: number;
      readonly requests: number;
      readonly bytesPerSecond: 0 | 1;
    }
  /** Holds connections that say nothing, `each` from every address, and opens a new one for each that ends. */
  | { readonly kind: 'silent'; readonly addresses: readonly string[]; readonly each: number }
  /** Makes one handshake after the other on each of `connections`, to ask with a key that nobody has. */
  | { readonly kind: 'guess'; readonly path: string; readonly connections: number }
);

/** The connections and answers of an attacker so far. */
export interface Suffered {
  opened: number;
  closed: number;
  /** The number of answers by their status. */
  readonly answers: Record<string, number>;
}

const HOST = '127.0.0.1';
/** How many requests of a flood are sent before their answers. They fit into one record of TLS. */
const AHEAD = 60;
/** How many addresses the owners of keys have, since one may not have a hundred connections. */
const ADDRESSES = 4;
const REOPENED_AFTER_MS = 100;
const addressOf = (index: number): string => `127.0.0.${2 + (index % ADDRESSES)}`;
const suffered: Suffered = { opened: 0, closed: 0, answers: {} };

function count(socket: Socket): void {
  suffered.opened += 1;
  socket.on('error', () => undefined); // `close` follows
  socket.once('close', () => {
    suffered.closed += 1;
  });
}

/** Counts the answers of a connection by their status, and calls `onAnswered` with how many have come. */
function countAnswers(socket: Socket, onAnswered?: (count: number) => void): void {
  let rest = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    const seen = rest + text;
    let end = 0;
    let answered = 0;
    for (const { 1: status = '', index } of seen.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      suffered.answers[status] = (suffered.answers[status] ?? 0) + 1;
      answered += 1;
      end = index + 1;
    }
    rest = seen.slice(Math.max(end, seen.length - 11));
    onAnswered?.(answered);
  });
}

const requestOf = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nX-API-Key: ${key}\r\n\r\n`;

function flood(index: number, { port, keys, path, requests }: Attack & { kind: 'flood' }): void {
  const key = keys[index % keys.length] ?? '';
  const tcp = connectTcp({ port, host: HOST, localAddress: addressOf(index) });
  tcp.on('error', () => undefined);
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false });
  count(socket);
  let left = requests;
  const send = (most: number): void => {
    const sent = Math.min(most, left);
    left -= sent;
    socket.write(requestOf(path, key).repeat(sent));
  };
  countAnswers(socket, send);
  socket.once('secureConnect', () => send(AHEAD));
}

/** A TCP connection that reads all that comes until it is told to be slow. */
class SlowReader extends Duplex {
  readonly #socket: Socket;
  #isSlow = false;

  constructor(port: number, localAddress: string) {
    super();
    const [whole, one] = [Buffer.alloc(65_536), Buffer.alloc(1)];
    const onread = {
      buffer: () => (this.#isSlow ? one : whole),
      callback: (bytes: number, buffer: Uint8Array) => {
        this.push(Buffer.from(buffer.subarray(0, bytes)));
        return !this.#isSlow;
      },
    };
    this.#socket = connectTcp({ port, host: HOST, localAddress, onread });
    count(this.#socket);
    this.#socket.once('close', () => this.destroy());
  }

  slowDown(bytesPerSecond: number): void {
    this.#isSlow = true;
    this.#socket.pause();
    if (bytesPerSecond === 0) return;
    const timer = setInterval(() => this.#socket.resume(), 1_000 / bytesPerSecond);
    this.#socket.once('close', () => clearInterval(timer));
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }
}

function leaveUnread(index: number, attack: Attack & { kind: 'unread' }): void {
  const { port, keys, path, requests, bytesPerSecond } = attack;
  const key = keys[index % keys.length] ?? '';
  const tcp = new SlowReader(port, addressOf(index));
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false });
  socket.on('error', () => undefined);
  socket.once('secureConnect', () => {
    socket.pause();
    socket.write(requestOf(path, key).repeat(requests));
    tcp.slowDown(bytesPerSecond);
  });
}

function holdSilent(port: number, localAddress: string): void {
  const socket = connectTcp({ port, host: HOST, localAddress });
  count(socket);
  socket.once('close', () => setTimeout(() => holdSilent(port, localAddress), REOPENED_AFTER_MS));
}

function guess(port: number, path: string): void {
  const socket = connectTls({ port, host: HOST, rejectUnauthorized: false });
  count(socket);
  countAnswers(socket);
  const key = `svc_test_abcdefghij_${'G'.repeat(43)}`;
  socket.once('secureConnect', () => void socket.write(requestOf(path, key)));
  socket.once('close', () => setTimeout(() => guess(port, path), 1));
}

function begin(attack: Attack): void {
  const { kind, port } = attack;
  const times = (number: number, act: (index: number) => void): void => {
    for (let index = 0; index < number; index++) act(index);
  };
  if (kind === 'flood') times(attack.connections, (index) => flood(index, attack));
  if (kind === 'unread') times(attack.connections, (index) => leaveUnread(index, attack));
  if (kind === 'guess') times(attack.connections, () => guess(port, attack.path));
  if (kind !== 'silent') return;
  for (const address of attack.addresses) times(attack.each, () => holdSilent(port, address));
}

// Runs as a thread, so that it takes no time from the customer that the test measures.
parentPort?.on('message', () => parentPort?.postMessage(suffered));
begin(workerData);
