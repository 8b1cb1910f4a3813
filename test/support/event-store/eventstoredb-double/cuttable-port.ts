import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A port in front of another one. Its connections can be cut or frozen, as when a node dies or hangs. */
export class CuttablePort {
  /** 0 until it listens. */
  port = 0;
  readonly #server: Server;
  readonly #target: number;
  readonly #host: string;
  /** Each connection with its counterpart. */
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isFrozen = false;

  private constructor(target: number, host: string) {
    this.#target = target;
    this.#host = host;
    this.#server = createServer((socket) => this.#join(socket));
  }

  /** Listens on 127.0.0.1. Port 0 takes a free port. The target is on `host`, by default this machine. */
  static async open({
    port,
    target,
    host = '127.0.0.1',
  }: {
    readonly port: number;
    readonly target: number;
    readonly host?: string;
  }): Promise<CuttablePort> {
    const front = new CuttablePort(target, host);
    front.#server.listen(port, '127.0.0.1');
    await once(front.#server, 'listening');
    front.port = (front.#server.address() as AddressInfo).port;
    return front;
  }

  /** Stops passing bytes. New connections are accepted and get no answer. */
  freeze(): void {
    this.#isFrozen = true;
    for (const [near, far] of this.#pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const [near, far] of this.#pairs) {
      near.pipe(far);
      far.pipe(near);
    }
  }

  /** Cuts every connection and accepts no more. */
  async close(): Promise<void> {
    this.#server.close();
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await once(this.#server, 'close');
  }

  #join(near: Socket): void {
    const far = connect(this.#target, this.#host);
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    // A connection that breaks on one side must break on the other.
    for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay(true);
    if (this.#isFrozen) return;
    far.pipe(near);
    near.pipe(far);
  }
}
