import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { lastingPort } from '../lasting-port.ts';

/** A proxy that a test can kill and start again on the same port. */
export interface TestProxy {
  readonly port: number;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** The authorities of all CONNECT requests that it has logged. */
  asked(): readonly string[];
}

export interface ProxyRules {
  /** The only `user:password` that it accepts. */
  readonly credentials?: string;
  /** The only ports that it connects to. */
  readonly ports?: readonly number[];
}

/** The proxy's reaction to a CONNECT: a tunnel, an answer instead of it, or nothing at all. */
type Reaction = 'connect' | 'silent' | { readonly answer: string };

/** A small proxy for CONNECT that answers as squid does. `react` decides about each request that its rules allow. */
export class ConnectProxy implements TestProxy {
  readonly #rules: ProxyRules;
  readonly #asked: string[] = [];
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  react: (authority: string) => Reaction = () => 'connect';

  constructor(rules: ProxyRules = {}) {
    this.#rules = rules;
  }

  get port(): number {
    return this.#port;
  }

  asked(): readonly string[] {
    return this.#asked;
  }

  async start(): Promise<void> {
    if (this.#port === 0) this.#port = await lastingPort();
    this.#server = createServer()
      .on('connection', (socket: Socket) => this.#track(socket))
      .on('connect', (request: IncomingMessage, socket: Socket) => this.#connect(request, socket))
      .listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server.close(), 'close');
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #connect({ url: authority = '', headers }: IncomingMessage, socket: Socket): void {
    this.#asked.push(authority);
    const [, port] = authority.split(':');
    const { credentials, ports } = this.#rules;
    const expected = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
    const answer = (text: string): void => void socket.end(`HTTP/1.1 ${text}\r\n\r\n`);
    if (headers['proxy-authorization'] !== expected) answer('407 Proxy Authentication Required');
    else if (ports?.includes(Number(port)) === false)
      answer('403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0');
    else this.#react(authority, socket, answer);
  }

  #react(authority: string, socket: Socket, answer: (text: string) => void): void {
    const [host = '', port = ''] = authority.split(':');
    const reaction = this.react(authority);
    if (reaction === 'silent') return;
    if (reaction !== 'connect') {
      answer(reaction.answer);
      return;
    }
    const onward = connect(Number(port), host);
    const refused = (): void => answer('503 Service Unavailable\r\nX-Squid-Error: ERR_CONNECT_FAIL 111');
    this.#track(onward);
    onward.once('error', refused);
    onward.once('connect', () => {
      onward.off('error', refused);
      onward.once('close', () => socket.destroy());
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    socket.once('close', () => onward.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined); // a test cuts connections
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
