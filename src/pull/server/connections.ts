import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';

/**
 * The open connections of a server and the answers in progress on each. Node's idle connections do not include those that
 * have not sent anything yet or are still in their handshake; each of these would delay a stop.
 */
export class Connections {
  readonly #open = new Set<Duplex>();
  /** By endpoint: the socket of a handshake is a different object than the TLS socket that follows. */
  readonly #handshaking = new Map<string, Socket>();
  readonly #answering = new Map<Duplex, Set<ServerResponse>>();
  #draining = false;

  constructor(server: Server) {
    // Under TLS requests arrive on the socket of `secureConnection`.
    const tls = server instanceof TlsServer;
    server.on('connection', (socket: Socket) => (tls ? this.#handshake(socket) : this.#opened(socket)));
    server.on('secureConnection', (socket: Socket) => {
      this.#handshaking.delete(endpointOf(socket));
      this.#opened(socket);
    });
    server.prependListener('request', (request, response) => this.#began(request.socket, response));
  }

  /** Whether a part of an answer has already been written. */
  isAnswering(socket: Duplex): boolean {
    return [...(this.#answering.get(socket) ?? [])].some((response) => response.headersSent);
  }

  /** Closes connections without an answer in progress; the others close after theirs. */
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
    const peer = endpointOf(socket);
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
      // Headers that were sent before the stop did not announce the end of the connection.
      if (this.#draining) socket.destroySoon();
    });
  }
}

function endAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function endpointOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
