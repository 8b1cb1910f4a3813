import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Server, ServerCredentials, type ServiceError } from '@grpc/grpc-js';
import { dropAsTooSlow } from './all-subscription.ts';
import type { ReadCall } from './answers.ts';
import { CuttablePort } from './cuttable-port.ts';
import { DoubleLog, type WriteResult } from './double-log.ts';
import { Groups } from './groups.ts';
import { type Kind, SERVERS } from './kinds.ts';
import { type ProposedRecord, systemRecord } from './log-record.ts';
import { createGrpcServer, type RefusedCall } from './services.ts';
import type { AppendFault } from './writes.ts';

export interface DoubleOptions {
  /** The kind of server; by default EventStoreDB. */
  readonly kind?: Kind;
  /** The folder of the log; by default a temporary one that `stop` removes. */
  readonly folder?: string;
  /** The port; by default a free one. */
  readonly port?: number;
  /** How often groups look for events that were not answered in time. The real server does so every second. */
  readonly tickMs?: number;
}

/** Starts a node. It takes some tens of milliseconds. */
export async function startEventStoreDbDouble(options: DoubleOptions = {}): Promise<EventStoreDbDouble> {
  const { kind = 'EventStoreDB', port = 0, tickMs = 100 } = options;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'fuel-eventstoredb-double-'));
  const log = DoubleLog.open(folder, SERVERS[kind]);
  const groups = new Groups(log, { tickMs });
  const double = new EventStoreDbDouble({
    log,
    groups,
    temporary: options.folder === undefined ? folder : undefined,
  });
  await double.becomeLeader();
  await double.listen(port);
  return double;
}

/**
 * Speaks the gRPC protocol of EventStoreDB 23.10, or of KurrentDB 25, as far as the project's adapter uses it, over an embedded event
 * store. It answers as the real server does; test/engines/eventstoredb/double.test.ts runs on both. It has no
 * access control, subscriptions to streams, scavenges or projections.
 */
export class EventStoreDbDouble {
  readonly #log: DoubleLog;
  readonly #groups: Groups;
  readonly #server: Server;
  readonly #temporary: string | undefined;
  readonly #followers = new Set<ReadCall>();
  readonly #atEndOfLog: (() => Promise<unknown>)[] = [];
  #front: CuttablePort | undefined;
  readonly #faults: AppendFault[] = [];
  #leaderPort: number | undefined;
  readonly #refusals: { readonly call: RefusedCall; readonly error: ServiceError }[] = [];

  constructor(parts: {
    readonly log: DoubleLog;
    readonly groups: Groups;
    readonly temporary: string | undefined;
  }) {
    this.#log = parts.log;
    this.#groups = parts.groups;
    this.#temporary = parts.temporary;
    const nextFault = (): AppendFault | undefined => this.#faults.shift();
    const port = (): number => this.port;
    const atEndOfLog = async (): Promise<void> => {
      await this.#atEndOfLog.shift()?.();
    };
    const nextRefusal = (wanted: RefusedCall): ServiceError | undefined => {
      const at = this.#refusals.findIndex(({ call }) => call === wanted);
      return at === -1 ? undefined : this.#refusals.splice(at, 1)[0]?.error;
    };
    const leaderPort = (): number | undefined => this.#leaderPort;
    const asked = { atEndOfLog, nextFault, nextRefusal, leaderPort, port };
    this.#server = createGrpcServer({ ...parts, followers: this.#followers, ...asked });
  }

  get port(): number {
    if (this.#front === undefined) throw new Error('it does not listen');
    return this.#front.port;
  }

  /** How many events each acknowledgement named. */
  get acknowledged(): readonly number[] {
    return this.#groups.acknowledged;
  }

  get url(): string {
    return `esdb://127.0.0.1:${this.port}?tls=false`;
  }

  async listen(port: number): Promise<void> {
    const bind = promisify(this.#server.bindAsync.bind(this.#server));
    const target = await bind('127.0.0.1:0', ServerCredentials.createInsecure());
    this.#front = await CuttablePort.open({ port, target });
  }

  /** Stops like a killed node: connections are cut. Answered appends are on disk for the next start in the folder. */
  async stop(): Promise<void> {
    await this.#front?.close();
    this.#server.forceShutdown();
    this.#groups.close();
    await this.#log.close();
    if (this.#temporary !== undefined) rmSync(this.#temporary, { recursive: true, force: true });
  }

  /** Hangs: it accepts connections and answers nothing, not even keep-alives. */
  freeze(): void {
    this.#front?.freeze();
  }

  thaw(): void {
    this.#front?.thaw();
  }

  /** Records this many appends without ever answering them. */
  leaveUnanswered(appends: number): void {
    this.failAppends(...Array.from({ length: appends }, () => 'unanswered' as const));
  }

  /** Lets the next appends fail, one with each fault. */
  failAppends(...faults: readonly AppendFault[]): void {
    this.#faults.push(...faults);
  }

  /** Makes this node follow the leader at the port: requests for the leader are refused from now on. */
  follow(leaderPort: number): void {
    this.#leaderPort = leaderPort;
  }

  /** Refuses the next calls of this kind, one with each error. */
  refuse(call: RefusedCall, ...errors: readonly ServiceError[]): void {
    this.#refusals.push(...errors.map((error) => ({ call, error })));
  }

  /** Runs one of these for each subscription that has read the log to its end and does not listen yet. */
  beforeListening(...works: readonly (() => Promise<unknown>)[]): void {
    this.#atEndOfLog.push(...works);
  }

  /** Ends the live subscriptions to the log like those of too slow consumers. Returns how many there were. */
  dropFollowers(): number {
    const followers = [...this.#followers];
    for (const follower of followers) dropAsTooSlow(follower);
    return followers.length;
  }

  /** Acts like a leader that has written the stream's events and waits for its cluster. Call the result to commit. */
  withhold(stream: string): () => void {
    this.#log.uncommitted.add(stream);
    return () => void this.#log.uncommitted.delete(stream);
  }

  /** The live subscriptions to the log. */
  get followers(): number {
    return this.#followers.size;
  }

  /** Writes the events of a new leader, which no read of the log shows. */
  async becomeLeader(): Promise<void> {
    for (const stream of this.#log.server.epochs) {
      await this.record(stream, systemRecord('$epoch-information', '{}'));
    }
  }

  /** Records an event with these bytes, JSON or not, at any revision. */
  record(stream: string, event: Omit<ProposedRecord, 'id'>): Promise<WriteResult> {
    const events = [{ id: crypto.randomUUID(), ...event }];
    return this.#log.write({ stream, expected: 'any', events });
  }
}
