import { randomUUID } from 'node:crypto';
import pg from 'pg';

const AGAIN_MS = 1_000;

/**
 * Hears what other threads and processes announce, on one separate connection for everything that this thread listens
 * to. Announcements are lost while that connection is cut, and behind a pool that gives each transaction another
 * connection. So listeners must also look for changes at intervals.
 */
export class Notifications {
  readonly #config: pg.ClientConfig;
  readonly channel: string;
  /** Marks the announcements of this thread, which it ignores. */
  readonly #self = randomUUID();
  readonly #heard = new Map<string, Set<() => void>>();
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(config: pg.ClientConfig, schema: string) {
    this.#config = config;
    this.channel = `fuel ${schema}`;
  }

  /** Returns the statement that announces a topic. */
  announcing(topic: string): { readonly sql: string; readonly values: readonly string[] } {
    return { sql: 'SELECT pg_notify($1, $2)', values: [this.channel, `${this.#self} ${topic}`] };
  }

  /** Returns a function that ends the listening. */
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
