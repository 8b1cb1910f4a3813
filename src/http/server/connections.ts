import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';

/**
 * The open connections of a server and what each is answering. Node's own account of idle connections leaves
 * out those that have not sent anything yet, and those still in their handshake: each would hold up a stop.
 */
export class Connections {
  readonly #open = new Set<Duplex>();
  /** By peer: a socket in its handshake is another object than the TLS socket that comes of it. */
  readonly #handshaking = new Map<string, Socket>();
  readonly #answering = new Map<Duplex, Set<ServerResponse>>();
  #draining = false;

  constructor(server: Server) {
    // Under TLS the socket that carries requests is the one that `secureConnection` announces.
    const tls = server instanceof TlsServer;
    server.on('connection', (socket: Socket) => (tls ? this.#handshake(socket) : this.#opened(socket)));
    server.on('secureConnection', (socket: Socket) => {
      this.#handshaking.delete(peerOf(socket));
      this.#opened(socket);
    });
    server.prependListener('request', (request, response) => this.#began(request.socket, response));
  }

  /** Whether some of an answer has already been written. */
  isAnswering(socket: Duplex): boolean {
    return [...(this.#answering.get(socket) ?? [])].some((response) => response.headersSent);
  }

  /** Closes what answers nothing; the rest ends with the answers under way. */
  drain(): void {
    this.#draining = true;
    for (const socket of this.#handshaking.values()) socket.destroy();
    for (const socket of this.#open) if (!this.#answering.has(socket)) socket.destroy();
    for (const responses of this.#answering.values()) for (const response of responses) endAfter(response);
  }

  destroyAll(): void {
    for (const socket of [...this.#handshaking.values(), ...this.#open]) socket.destroy();
  }

  #handshake(socket: Socket): void {
    const peer = peerOf(socket);
    this.#handshaking.set(peer, socket);
    socket.once('close', () => this.#handshaking.delete(peer));
  }

  #opened(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#answering.delete(socket);
    });
    if (this.#draining) socket.destroy();
  }

  #began(socket: Socket, response: ServerResponse): void {
    const responses = this.#answering.get(socket) ?? new Set();
    this.#answering.set(socket, responses.add(response));
    if (this.#draining) endAfter(response);
    response.once('close', () => {
      responses.delete(response);
      if (responses.size > 0) return;
      this.#answering.delete(socket);
      // Its headers may have been sent before the stop, without a word of the connection's end.
      if (this.#draining) socket.destroySoon();
    });
  }
}

function endAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
