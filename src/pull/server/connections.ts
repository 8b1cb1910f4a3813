import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  /** The answers in progress. */
  readonly answers: Set<ServerResponse>;
}

/**
 * The open connections of a server and the answers in progress on each. Node does not count connections as idle that
 * have not sent anything yet or are still in their handshake, and each of them would delay a stop.
 */
export class Connections {
  /** The connections by endpoint, since with TLS the requests of a connection arrive on a different socket. */
  readonly #open = new Map<string, Connection>();
  #draining = false;

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => this.#opened(socket));
    server.prependListener('request', (request, response) => this.#began(request.socket, response));
  }

  /** True if a part of an answer has already been written. */
  isAnswering(socket: Socket): boolean {
    const { answers = [] } = this.#open.get(endpointOf(socket)) ?? {};
    return [...answers].some((answer) => answer.headersSent);
  }

  /** Makes each connection close after its answer from now on. */
  drain(): void {
    this.#draining = true;
    for (const { answers } of this.#open.values()) for (const answer of answers) announceEnd(answer);
  }

  /** Closes the connections without an answer in progress. */
  closeSilent(): void {
    for (const { socket, answers } of this.#open.values()) if (answers.size === 0) socket.destroy();
  }

  destroyAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  #opened(socket: Socket): void {
    const endpoint = endpointOf(socket);
    const connection: Connection = { socket, answers: new Set() };
    this.#open.set(endpoint, connection);
    socket.once('close', () => {
      if (this.#open.get(endpoint) === connection) this.#open.delete(endpoint);
    });
  }

  #began(socket: Socket, answer: ServerResponse): void {
    const { answers } = this.#open.get(endpointOf(socket)) ?? { answers: new Set() };
    answers.add(answer);
    if (this.#draining) announceEnd(answer);
    answer.once('close', () => {
      answers.delete(answer);
      // Headers that were sent before the stop did not announce the end of the connection.
      if (this.#draining && answers.size === 0) socket.destroySoon();
    });
  }
}

function announceEnd(answer: ServerResponse): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
}

function endpointOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
