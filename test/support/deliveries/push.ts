import { join } from 'node:path';
import { pino } from 'pino';
import type { Clock } from '../../../src/base/clock.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import type { TransactionEvent } from '../../../src/domain/transaction-events.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import type { DeliveryMetrics } from '../../../src/push/dispatch/attempt.ts';
import { Dispatcher } from '../../../src/push/dispatch/dispatcher.ts';
import { longestWaitMs } from '../../../src/push/dispatch/retry-schedule.ts';
import { applyEnds } from '../../../src/push/ends.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { FanOut, type FanOutOptions } from '../../../src/push/fan-out/fan-out.ts';
import { createHealthEvents } from '../../../src/push/health/health-events.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import type { Sender } from '../../../src/push/sender/sender.ts';
import type { SendRequest, SendResult } from '../../../src/push/sender/timed-send.ts';
import { keyIssued, opened, profileSet, webhookSet } from '../accounts/account-samples.ts';
import { KeptRows } from '../accounts/kept-rows.ts';
import { SUCCESS } from '../deliveries/deliveries.ts';
import { queueInMemory } from '../deliveries/open-queue.ts';
import { MemoryStores } from '../engines/memory-stores.ts';
import { confirmedData } from '../transactions/records.ts';
import { FakeAlarmClock } from './fake-alarm-clock.ts';
import { type CommitWatcher, StoreOfProcess } from './store-of-process.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** The retry delays of the specification. */
const RETRY_DELAYS_MS = [30_000, 150_000];
const RETENTION_MS = 90 * 86_400_000;

export const NO_METRICS: DeliveryMetrics = {
  waitingLanes: () => undefined,
  unsigned: () => undefined,
  attempting: () => undefined,
  attempted: () => undefined,
};

/** A result of an exchange on a kept connection. */
export function sentIn(answerMs: number, outcome: AttemptOutcome): SendResult {
  const sent = {
    address: null,
    durationMs: answerMs,
    lateMs: 0,
    connectMs: null,
    roundTripMs: null,
    answerMs,
  };
  return { outcome, ...sent, isWithheld: false, isSentAgain: false };
}

interface Sent {
  readonly atMs: number;
  readonly url: string;
  readonly id: string;
  readonly attempt: number;
}

/** A sender that answers by a script. `never` leaves the attempt open forever. */
class ScriptedSender implements Sender {
  readonly sent: Sent[] = [];
  readonly #clock: FakeAlarmClock;
  answer: (sent: Sent) => { readonly outcome: AttemptOutcome; readonly afterMs: number } | 'never';

  constructor(clock: FakeAlarmClock) {
    this.#clock = clock;
    this.answer = () => ({ outcome: SUCCESS, afterMs: 5 });
  }

  send({ url, body }: SendRequest): Promise<SendResult> {
    const { id, attempt } = JSON.parse(body) as { id: string; attempt: number };
    const sent = { atMs: this.#clock.now(), url, id, attempt };
    this.sent.push(sent);
    const answer = this.answer(sent);
    if (answer === 'never') return new Promise(() => undefined);
    const { outcome, afterMs } = answer;
    return new Promise((resolve) => {
      this.#clock.setTimer(afterMs, () => resolve(sentIn(afterMs, outcome)));
    });
  }

  /** Returns a number as if every request found an open connection. */
  openConnections(): number {
    return Infinity;
  }

  /** Sends without a proxy. */
  proxyWaitMs(): number {
    return 0;
  }

  async close(): Promise<void> {}
}

/** A machine whose stores outlive the processes that are started and killed on it. */
export class PushMachine {
  readonly clock = new FakeAlarmClock();
  readonly store: SqliteEventStore;
  readonly queue: DeliveryQueue;
  readonly rows: KeptRows;
  readonly sender: ScriptedSender;
  readonly logLines: string[] = [];
  /** Wraps each commit to the queue. It must call `commit` once. */
  onCommit: CommitWatcher = (_name, _args, commit) => commit();
  /** The reason why no request can be signed, if none can. */
  unsigned: string | undefined;
  #dispatcher: Dispatcher | undefined;
  #fanOut: FanOut | undefined;
  #followed = 0;
  #process: StoreOfProcess | undefined;

  /** The queue is in memory unless `openQueue` opens another one. */
  constructor(folder: string, openQueue = (clock: Clock) => queueInMemory(new MemoryStores(), clock)) {
    this.store = openSqliteEventStore({ path: join(folder, 'events.db'), clock: this.clock });
    this.queue = openQueue(this.clock);
    this.rows = new KeptRows(this.store as EventStore, this.clock);
    this.sender = new ScriptedSender(this.clock);
  }

  get dispatcher(): Dispatcher {
    if (this.#dispatcher === undefined) throw new Error('no process runs');
    return this.#dispatcher;
  }

  get fanOut(): FanOut {
    if (this.#fanOut === undefined) throw new Error('no process runs');
    return this.#fanOut;
  }

  /** Starts a process. */
  start(): void {
    this.prepare();
    this.dispatcher.start();
  }

  /** Prepares a process without starting its dispatcher. */
  prepare(): void {
    const { clock, store } = this;
    const process = new StoreOfProcess(this.queue, this.onCommit);
    const { queue } = process;
    const log = pino(
      { base: null, timestamp: false },
      { write: (line: string) => void this.logLines.push(line) },
    );
    const dispatcher = new Dispatcher({
      queue,
      rows: this.rows.tables,
      environment: 'staging',
      sender: this.sender,
      requestFor: ({ id, attemptNumber: attempt }, { url }) => {
        if (this.unsigned !== undefined) throw new Error(this.unsigned);
        return { url, headers: {}, body: JSON.stringify({ id, attempt }) };
      },
      longestWaitMs: longestWaitMs(RETRY_DELAYS_MS),
      retryDelayMs: ({ attemptNumber }) => RETRY_DELAYS_MS[attemptNumber - 1],
      appendHealthEvent: createHealthEvents(store as EventStore, clock),
      clock,
      log,
      holder: 'test',
      owners: { look: async () => undefined, owns: () => true },
      steady: clock.steady,
      metrics: NO_METRICS,
    });
    this.#process = process;
    this.#dispatcher = dispatcher;
    this.#fanOut = this.fanOutTo((deliveries) => dispatcher.accept(deliveries), queue);
  }

  /** Makes a fan-out of this machine that hands its deliveries to `accept`. */
  fanOutTo(accept: FanOutOptions['accept'], queue: FanOutOptions['queue'] = this.queue): FanOut {
    const { store, clock } = this;
    const history = new AccountHistory({ store, rows: this.rows.tables });
    const terms = { clock, environment: 'staging', retentionMs: RETENTION_MS } as const;
    return new FanOut({ store, queue, history, accept, ...terms });
  }

  /** Kills the process like kill -9: nothing under way ends, and nothing planned happens. */
  kill(): void {
    this.#process?.cut();
    this.#process = undefined;
    this.clock.dropTimers();
    this.#dispatcher = undefined;
    this.#fanOut = undefined;
  }

  /** Brings the rows up to the log's end, and applies the ends of deliveries, as followers do. */
  async follow(): Promise<void> {
    await this.rows.follow();
    const batch = this.store.readAll({ prefixes: ['account-'], after: this.#followed, limit: 1_000_000 });
    this.#followed = batch.position;
    const { clock } = this;
    const parts = { store: this.store as EventStore, queue: this.#process?.queue ?? this.queue, clock };
    await applyEnds(batch.events, { ...parts, rows: this.rows.tables, environment: 'staging' });
  }

  /** Records account events. They are applied when this resolves. */
  async account(...events: readonly AccountEvent[]): Promise<void> {
    for (const event of events) await this.record(accountStream(event.data.account_id), event);
    await this.follow();
  }

  async record(stream: string, event: AccountEvent | TransactionEvent): Promise<RecordedEvent> {
    const appended = newEvent(event, AUTHOR, this.clock.now());
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
    const created_at = new Date(this.clock.now()).toISOString();
    const data = confirmedData({ transaction_id: transactionId, created_at, ...overrides });
    const event = { type: 'TransactionConfirmed', data } as unknown as TransactionEvent;
    const recorded = await this.record(`transaction-${transactionId}`, event);
    await this.follow();
    return recorded;
  }

  async void(transactionId: number): Promise<RecordedEvent> {
    const voided_at = new Date(this.clock.now()).toISOString();
    const data = { transaction_id: transactionId, account_id: 7, voided_at, reason: null };
    const recorded = await this.record(`transaction-${transactionId}`, { type: 'TransactionVoided', data });
    await this.follow();
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
    await this.rows.tables.close();
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
