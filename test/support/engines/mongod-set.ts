import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { until } from '../waiting.ts';
import { Mongod } from './mongod.ts';

const MEMBERS = 3;
/** How soon another primary is elected when the current one is dead. */
const ELECTION_MS = 2_000;
const STARTED_WITHIN_MS = 60_000;
const ASK_MS = 1_000;

/** A replica set of three whose primary a test can kill. */
export class MongodSet {
  readonly #binary: string;
  readonly #members: Mongod[] = [];
  #dead: Mongod | undefined;

  constructor(binary: string) {
    this.#binary = binary;
  }

  get url(): string {
    return `mongodb://${this.#hosts.join(',')}/?replicaSet=rs0`;
  }

  /** Starts the set, or the member that was killed. Resolves when there is a primary and every member follows it. */
  async start(): Promise<void> {
    if (this.#members.length === 0) await this.#initiate();
    await this.#dead?.start();
    this.#dead = undefined;
    await until(() => this.#isWhole(), STARTED_WITHIN_MS);
  }

  /** Kills the primary with SIGKILL. */
  async killPrimary(): Promise<void> {
    for (;;) {
      for (const member of this.#members) {
        if ((await this.#hello(member))?.isWritablePrimary !== true) continue;
        this.#dead = member;
        await member.kill();
        return;
      }
      await sleep(100);
    }
  }

  async remove(): Promise<void> {
    for (const member of this.#members) await member.remove();
  }

  get #hosts(): string[] {
    return this.#members.map(({ port }) => `127.0.0.1:${port}`);
  }

  async #initiate(): Promise<void> {
    for (let count = 0; count < MEMBERS; count++) {
      const member = new Mongod({ binary: this.#binary, replicaSet: 'others initiate it' });
      this.#members.push(await member.start());
    }
    const members = this.#hosts.map((host, _id) => ({ _id, host }));
    const settings = { electionTimeoutMillis: ELECTION_MS };
    await this.#ask(this.#members[0], { replSetInitiate: { _id: 'rs0', members, settings } });
  }

  async #isWhole(): Promise<boolean> {
    const states = await Promise.all(this.#members.map((member) => this.#hello(member)));
    const isThere = (state: Hello): boolean => state?.isWritablePrimary === true || state?.secondary === true;
    return states.every(isThere) && states.some((state) => state?.isWritablePrimary === true);
  }

  async #hello(member: Mongod): Promise<Hello> {
    return this.#ask(member, { hello: 1 }).catch(() => undefined); // not up yet, or dead
  }

  async #ask(member: Mongod | undefined, command: Readonly<Record<string, unknown>>): Promise<Hello> {
    const client = new MongoClient(member?.url ?? '', {
      serverSelectionTimeoutMS: ASK_MS,
      connectTimeoutMS: ASK_MS,
    });
    try {
      return await client.db('admin').command(command);
    } finally {
      await client.close();
    }
  }
}

type Hello = { readonly isWritablePrimary?: boolean; readonly secondary?: boolean } | undefined;
