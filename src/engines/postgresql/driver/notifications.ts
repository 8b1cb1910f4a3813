import { randomUUID } from 'node:crypto';
import pg from 'pg';

const AGAIN_MS = 1_000;

/**
 * Hears what other threads and processes announce, on a connection of its own for all that this thread listens to. It
 * is lost while there is no such connection, and behind a pool that gives each transaction another one: who listens looks
 * now and then too.
 */
export class Notifications {
  readonly #config: pg.ClientConfig;
  readonly channel: string;
  /** What this thread announces is not news to it. */
  readonly #self = randomUUID();
  readonly #heard = new Map<string, Set<() => void>>();
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(config: pg.ClientConfig, schema: string) {
    this.#config = config;
    this.channel = `fuel ${schema}`;
  }

  /** The statement that announces a topic. */
  announcing(topic: string): { readonly sql: string; readonly values: readonly string[] } {
    return { sql: 'SELECT pg_notify($1, $2)', values: [this.channel, `${this.#self} ${topic}`] };
  }

  /** Returns what ends it. */
  hear(topic: string, onHeard: () => void): () => void {
    const listeners = this.#heard.get(topic) ?? new Set();
    this.#heard.set(topic, listeners.add(onHeard));
    if (this.#client === undefined && !this.#isClosed) this.#connect();
    return () => listeners.delete(onHeard);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#client?.end();
  }

  #connect(): void {
    const client = new pg.Client(this.#config);
    this.#client = client;
    client.on('notification', ({ payload = '' }) => {
      const [from, topic = ''] = payload.split(' ', 2);
      if (from !== this.#self) for (const onHeard of this.#heard.get(topic) ?? []) onHeard();
    });
    client.on('error', () => undefined); // `end` follows
    client.on('end', () => this.#connectLater(client));
    client
      .connect()
      .then(() => client.query(`LISTEN ${pg.escapeIdentifier(this.channel)}`))
      .catch(() => this.#connectLater(client));
  }

  #connectLater(client: pg.Client): void {
    if (this.#isClosed || this.#client !== client) return;
    void client.end().catch(() => undefined);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), AGAIN_MS).unref();
  }
}
