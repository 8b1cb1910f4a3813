import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of a connection may wait for their turn: as many as fit into a record of TLS. They take 0.5 MB. */
const MAX_WAITING = 100;

interface Connection {
  readonly socket: Socket;
  /** The socket on which its requests arrive, which with TLS is a different one. */
  http?: Socket;
  /** The groups of peers that it is counted in. */
  readonly groups: readonly string[];
  isProven: boolean;
  /** The answers that are not complete. The first one is in progress, the others wait for their turn. */
  readonly answers: Set<ServerResponse>;
}

/**
 * The open connections of a server, from before their handshake. Each answers one request at a time. Node alone would
 * start all the requests that a client pipelines, and keep every answer that the client does not read. It also does not
 * count a connection as idle that has not sent anything yet, and counts one as idle whose client is still reading.
 */
export class ServerConnections {
  /** The connections by endpoint, the oldest first. */
  readonly #open = new Map<string, Connection>();
  readonly #counts = new Map<string, number>();
  #isDraining = false;
  #isClosing = false;

  get size(): number {
    return this.#open.size;
  }

  /** Returns how many connections are open in a group of peers. */
  countOf(group: string): number {
    return this.#counts.get(group) ?? 0;
  }

  /** Adds a new connection. One that counts as proven from the start is never closed to make room for another one. */
  add(socket: Socket, groups: readonly string[], isProven: boolean): void {
    const endpoint = endpointOf(socket);
    const connection: Connection = { socket, groups, isProven, answers: new Set() };
    // A reset connection whose `close` is still to come: its client may use the port again at once.
    const former = this.#open.get(endpoint);
    if (former !== undefined) this.#remove(endpoint, former);
    this.#open.set(endpoint, connection);
    for (const group of groups) this.#counts.set(group, this.countOf(group) + 1);
    socket.once('close', () => this.#remove(endpoint, connection));
  }

  /** Notes that a key was accepted on a connection. */
  prove(socket: Socket): void {
    const connection = this.#open.get(endpointOf(socket));
    if (connection !== undefined) connection.isProven = true;
  }

  isProven(socket: Socket): boolean {
    return this.#open.get(endpointOf(socket))?.isProven ?? false;
  }

  /**
   * Ends the oldest connection on which no key was accepted, of a group or of all, and returns false if there is none.
   */
  endOldestUnproven(group?: string): boolean {
    for (const [endpoint, connection] of this.#open) {
      if (connection.isProven || (group !== undefined && !connection.groups.includes(group))) continue;
      this.#remove(endpoint, connection);
      connection.socket.resetAndDestroy();
      return true;
    }
    return false;
  }

  /** Calls `handler` for each request once the earlier ones of its connection are answered completely. */
  answerInTurn(server: Server, handler: RequestListener): void {
    server.on('request', (request, response) => this.#began(request, response, handler));
  }

  /** True if a part of an answer has already been written. */
  isAnswering(socket: Socket): boolean {
    const [answer] = this.#open.get(endpointOf(socket))?.answers ?? [];
    return answer?.headersSent ?? false;
  }

  /** Makes each connection close after its last answer from now on, and says so in that answer. */
  drain(): void {
    this.#isDraining = true;
    for (const { answers } of this.#open.values()) announceEnd(answers);
  }

  /** Closes the connections without an answer in progress, and from now on each one that has none left. */
  closeSilent(): void {
    this.#isClosing = true;
    for (const { socket, answers } of this.#open.values()) if (answers.size === 0) socket.destroy();
  }

  /**
   * Closes a connection on which nothing has moved for too long. One with an answer that its client does not read is
   * reset, since the system would keep what it has not read for minutes.
   */
  endStalled(socket: Socket): void {
    const connection = this.#open.get(endpointOf(socket));
    if (connection === undefined || connection.answers.size === 0) socket.destroy();
    else connection.socket.resetAndDestroy();
  }

  destroyAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  #remove(endpoint: string, connection: Connection): void {
    if (this.#open.get(endpoint) !== connection) return;
    this.#open.delete(endpoint);
    for (const group of connection.groups) {
      const left = this.countOf(group) - 1;
      if (left === 0) this.#counts.delete(group);
      else this.#counts.set(group, left);
    }
  }

  #began(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    const { socket } = request;
    const connection = this.#open.get(endpointOf(socket));
    if (connection === undefined) return; // it is closed, so nobody is left to answer
    const { answers } = connection;
    answers.add(response);
    const ended = (): void => {
      if (answers.delete(response) && answers.size === 1) socket.resume(); // none waits behind the last one
    };
    response.prependOnceListener('finish', ended); // before Node's own listener, which begins the next turn
    response.once('close', () => {
      ended();
      if (this.#isClosing && answers.size === 0) socket.destroySoon();
    });
    const begin = (): void => {
      if (this.#isDraining) announceEnd(answers);
      handler(request, response);
    };
    // Node gives a response its socket when the one before is complete, and emits `socket` then.
    if (response.socket !== null) begin();
    else if (answers.size > MAX_WAITING) socket.destroy();
    else {
      response.once('socket', begin);
      holdBack(connection, socket);
    }
  }
}

/** Stops reading while requests wait. Node resumes the socket after it has read a request, so it is paused again then. */
function holdBack(connection: Connection, socket: Socket): void {
  socket.pause();
  if (connection.http === socket) return;
  connection.http = socket;
  socket.on('resume', () => {
    if (connection.answers.size > 1) socket.pause();
  });
}

/** Announces the end of a connection in the answer in progress, unless other requests wait behind it. */
function announceEnd(answers: ReadonlySet<ServerResponse>): void {
  const [answer] = answers;
  if (answers.size === 1 && answer?.headersSent === false) answer.setHeader('Connection', 'close');
}

function endpointOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
