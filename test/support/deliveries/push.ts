import { join } from 'node:path';
import { pino } from 'pino';
import { readAccountEvent } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { Clock } from '../../../src/base/clock.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import type { TransactionEvent } from '../../../src/domain/transaction-events.ts';
import { MemoryDeliveries } from '../../../src/engines/memory/queue/deliveries.ts';
import { openMemoryQueue } from '../../../src/engines/memory/queue/queue.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { Dispatcher } from '../../../src/push/dispatch/dispatcher.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { FanOut, type FanOutOptions } from '../../../src/push/fan-out/fan-out.ts';
import { createHealthEvents } from '../../../src/push/health/health-events.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue, WorkListener, WorkSignal } from '../../../src/push/queue/delivery-queue.ts';
import type { Sender, SendRequest, SendResult } from '../../../src/push/sender/sender.ts';
import { keyIssued, opened, profileSet, webhookSet } from '../accounts/account-samples.ts';
import { confirmedData } from '../transactions/records.ts';
import { FakeScheduler } from './fake-scheduler.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** The body has the delivery's id; the rest of the envelope is tested separately. */
export const RETRY_DELAYS_MS = [30_000, 150_000];
const RETENTION_MS = 90 * 86_400_000;

export const OK: AttemptOutcome = { ok: true, answer: { status: 200, headers: {}, body: '' } };
export const failedWith = (status: number): AttemptOutcome => ({
  ok: false,
  kind: 'status',
  detail: `status ${status}`,
  answer: { status, headers: {}, body: '' },
});
export const TIMEOUT: AttemptOutcome = { ok: false, kind: 'timeout', detail: 'no answer', answer: null };

export interface Sent {
  readonly atMs: number;
  readonly url: string;
  readonly id: string;
  readonly attempt: number;
}

/** Answers by a script; `never` leaves the attempt open for good. */
export class ScriptedSender implements Sender {
  readonly sent: Sent[] = [];
  readonly #scheduler: FakeScheduler;
  answer: (sent: Sent) => { readonly outcome: AttemptOutcome; readonly afterMs: number } | 'never';

  constructor(scheduler: FakeScheduler) {
    this.#scheduler = scheduler;
    this.answer = () => ({ outcome: OK, afterMs: 5 });
  }

  send({ url, body }: SendRequest): Promise<SendResult> {
    const { id, attempt } = JSON.parse(body) as { id: string; attempt: number };
    const sent = { atMs: this.#scheduler.now(), url, id, attempt };
    this.sent.push(sent);
    const answer = this.answer(sent);
    if (answer === 'never') return new Promise(() => undefined);
    const { outcome, afterMs } = answer;
    return new Promise((resolve) => {
      this.#scheduler.setTimer(afterMs, () => resolve({ outcome, durationMs: afterMs, lateMs: 0 }));
    });
  }

  async close(): Promise<void> {}
}

const COMMITS = new Set(['enqueue', 'claim', 'report', 'resume', 'endLane', 'withdraw', 'resetHealth']);

export type CommitWatcher = (
  name: string,
  args: readonly unknown[],
  commit: () => Promise<unknown>,
) => Promise<unknown>;

/** The delivery queue as one process has it: once the process is killed, it hears nothing of it any more. */
class StoreOfProcess {
  readonly queue: DeliveryQueue;
  commitsLeft = Infinity;
  readonly #listeners = new Set<WorkListener>();
  readonly #target: DeliveryQueue;
  #cut = false;

  constructor(target: DeliveryQueue, onLastCommit: () => void, watch: CommitWatcher) {
    this.#target = target;
    const changed: WorkSignal = {
      add: (listener) => {
        this.#listeners.add(listener);
        target.changed.add(listener);
      },
      remove: (listener) => target.changed.remove(listener),
    };
    const call = async (name: string, args: unknown[], method: () => Promise<unknown>): Promise<unknown> => {
      if (this.#cut) return new Promise(() => undefined);
      const result = COMMITS.has(name) ? await watch(name, args, method) : await method();
      if (COMMITS.has(name) && --this.commitsLeft <= 0 && !this.#cut) onLastCommit();
      return this.#cut ? new Promise(() => undefined) : result;
    };
    this.queue = new Proxy(target, {
      get: (_, name: keyof DeliveryQueue) => {
        if (name === 'changed') return changed;
        const method = target[name] as (...all: unknown[]) => Promise<unknown>;
        return (...all: unknown[]) => call(name, all, () => method.apply(target, all));
      },
    });
  }

  cut(): void {
    this.#cut = true;
    for (const listener of this.#listeners) this.#target.changed.remove(listener);
  }
}

/** One machine: its stores outlive the processes that are started and killed on it. */
export class PushMachine {
  readonly scheduler = new FakeScheduler();
  readonly store: SqliteEventStore;
  readonly queue: DeliveryQueue;
  readonly sender: ScriptedSender;
  readonly logLines: string[] = [];
  /** Stands around each commit to the queue; it must call `commit` once. */
  onCommit: CommitWatcher = (_name, _args, commit) => commit();
  /** Why no request can be signed, where none can. */
  unsigned: string | undefined;
  #directory = new Directory();
  #dispatcher: Dispatcher | undefined;
  #fanOut: FanOut | undefined;
  #followed = 0;
  #process: StoreOfProcess | undefined;

  /** In memory unless `openQueue` opens another. */
  constructor(
    folder: string,
    openQueue = (clock: Clock) => openMemoryQueue(new MemoryDeliveries(clock), clock),
  ) {
    this.store = openSqliteEventStore({ path: join(folder, 'events.db'), clock: this.scheduler });
    this.queue = openQueue(this.scheduler);
    this.sender = new ScriptedSender(this.scheduler);
  }

  get isAlive(): boolean {
    return this.#dispatcher !== undefined;
  }

  get dispatcher(): Dispatcher {
    if (this.#dispatcher === undefined) throw new Error('no process runs');
    return this.#dispatcher;
  }

  get fanOut(): FanOut {
    if (this.#fanOut === undefined) throw new Error('no process runs');
    return this.#fanOut;
  }

  get directory(): Directory {
    return this.#directory;
  }

  /** Starts a process whose directory has caught up. */
  start(): void {
    this.prepare();
    this.dispatcher.start();
  }

  /** A process whose directory has caught up, and whose dispatcher is not started yet. */
  prepare(): void {
    const { scheduler, store } = this;
    const process = new StoreOfProcess(this.queue, () => this.kill(), this.onCommit);
    const { queue } = process;
    const directory = new Directory();
    const log = pino(
      { base: null, timestamp: false },
      { write: (line: string) => void this.logLines.push(line) },
    );
    const dispatcher = new Dispatcher({
      queue,
      directory,
      environment: 'staging',
      sender: this.sender,
      requestFor: ({ id, attemptNumber: attempt }, { url }) => {
        if (this.unsigned !== undefined) throw new Error(this.unsigned);
        return { url, headers: {}, body: JSON.stringify({ id, attempt }) };
      },
      retryDelayMs: ({ attemptNumber }) => RETRY_DELAYS_MS[attemptNumber - 1],
      appendHealthEvent: createHealthEvents(store as EventStore, scheduler),
      scheduler,
      log,
      holder: 'test',
    });
    this.#process = process;
    this.#directory = directory;
    this.#dispatcher = dispatcher;
    this.#fanOut = this.fanOutTo((deliveries) => dispatcher.accept(deliveries), queue);
    this.#followed = 0;
    this.follow();
  }

  /** A fan-out of this machine whose deliveries something else takes. */
  fanOutTo(
    accept: FanOutOptions['accept'],
    queue: FanOutOptions['queue'] = this.queue,
    directoryAt?: FanOutOptions['directoryAt'],
  ): FanOut {
    const { store, scheduler: clock } = this;
    const history = new AccountHistory({ store, directory: this.#directory });
    const terms = { clock, environment: 'staging', retentionMs: RETENTION_MS } as const;
    return new FanOut({ store, queue, history, accept, directoryAt, ...terms });
  }

  /** As kill -9: nothing that was under way ends, nothing that was planned happens. */
  kill(): void {
    this.#process?.cut();
    this.scheduler.dropTimers();
    this.#dispatcher = undefined;
    this.#fanOut = undefined;
  }

  /** As kill -9 right after one of the next commits to the queue, before anybody hears of it. */
  killAfterCommits(commits: number): void {
    if (this.#process !== undefined) this.#process.commitsLeft = commits;
  }

  /** Brings the directory up to the log's end, as the live directory does. */
  follow(): void {
    const batch = this.store.readAll({ prefixes: ['account-'], after: this.#followed, limit: 1_000_000 });
    for (const recorded of batch.events) {
      const read = readAccountEvent(recorded);
      this.#directory.apply({ ...recorded, decoded: read });
      if (read.ok)
        this.#dispatcher?.accountEvent(read.event, { position: recorded.position, atMs: read.atMs });
    }
    this.#directory.advance(batch.position);
    this.#followed = batch.position;
    this.#dispatcher?.directoryMoved();
  }

  /** Records account events; the directory has them when this resolves. */
  async account(...events: readonly AccountEvent[]): Promise<void> {
    for (const event of events) await this.record(accountStream(event.data.account_id), event);
    this.follow();
  }

  async record(stream: string, event: AccountEvent | TransactionEvent): Promise<RecordedEvent> {
    const appended = newEvent(event, AUTHOR, this.scheduler.now());
    const [result] = await this.store.append([{ stream, expected: 'any', events: [appended] }]);
    const recorded = result?.kind === 'appended' ? this.store.readAt([result.position])[0] : undefined;
    if (recorded === undefined) throw new Error(`not recorded in ${stream}`);
    return recorded;
  }

  /** Records a confirmed transaction, created now unless given, and returns its event. */
  async confirm(
    transactionId: number,
    overrides: Readonly<Record<string, unknown>> = {},
  ): Promise<RecordedEvent> {
    const created_at = new Date(this.scheduler.now()).toISOString();
    const data = confirmedData({ transaction_id: transactionId, created_at, ...overrides });
    const event = { type: 'TransactionConfirmed', data } as unknown as TransactionEvent;
    const recorded = await this.record(`transaction-${transactionId}`, event);
    this.follow();
    return recorded;
  }

  async void(transactionId: number): Promise<RecordedEvent> {
    const voided_at = new Date(this.scheduler.now()).toISOString();
    const data = { transaction_id: transactionId, account_id: 7, voided_at, reason: null };
    const recorded = await this.record(`transaction-${transactionId}`, { type: 'TransactionVoided', data });
    this.follow();
    return recorded;
  }

  async fan(...events: readonly RecordedEvent[]) {
    return this.fanOut.handle(events.map((event) => ({ event, retryCount: 0 })));
  }

  async push(...transactionIds: readonly number[]): Promise<void> {
    for (const id of transactionIds) await this.fan(await this.confirm(id));
  }

  async close(): Promise<void> {
    await this.queue.close();
    await this.store.close();
  }
}

/** Account 7 with access and one key whose webhook is set. */
export const READY: readonly AccountEvent[] = [
  opened(),
  { type: 'IntegrationEnabled', data: { account_id: 7 } },
  profileSet('2026-01-01T00:00:00.000Z', null),
  keyIssued(),
  webhookSet(),
];
