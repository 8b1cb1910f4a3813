import { isNoticeType, NOTICE_MAX_AGE_MS, type Notice, noticesFor } from '../../../projections/notices.ts';
import { foldRecorded, readAccountEvent } from '../../accounts/read-account-event.ts';
import { type Clock, steadyClock } from '../../base/clock.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { errorKind } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { pause } from '../../base/pause.ts';
import type { Account } from '../../domain/account.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { noticesStream, type OperationsEvent } from '../../domain/operations-events.ts';
import { decodeStrict, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore, SubscriptionBatch } from '../../event-store/event-store.ts';
import { follow } from '../../event-store/follow.ts';
import { newEvent } from '../../event-store/new-event.ts';
import { timeForAges } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import {
  anchorOf,
  continuesAfter,
  type MadeFrom,
  mismatchOf,
  storeIdentity,
} from '../../event-store/store-identity.ts';
import type { Mailer } from './mailer.ts';
import { noticeText } from './notice-text.ts';

/** The name of the follower, and of its lease. */
export const NOTICES = 'notices';

const LEASE_MS = 12_000;
const AUTHOR = { actor: 'system', command: 'notices' };
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 5 * 60_000;
/** No further events are read while this many wait for the mail server. */
const MAX_WAITING = 100;
const FULL_PAUSE_MS = 1_000;
/** The least time between two checkpoints. */
const SAVE_MS = 1_000;

export interface NotifierOptions {
  readonly store: EventStore;
  readonly coordination: Pick<Coordination, 'acquire' | 'release' | 'checkpoint' | 'moveCheckpoint'>;
  /** Names this notifier among those that compete for the lease. */
  readonly holder: string;
  readonly mailer: Mailer;
  readonly operatorEmail: string | null;
  readonly clock: Clock;
  readonly steady?: Clock;
  readonly log: Log;
  /** Counts notices that nobody will get. */
  readonly givenUp: { inc(): void };
  readonly signal: AbortSignal;
}

/**
 * Mails the notices of account events until the signal aborts: each once, and again only if its `NoticeSent` could not be
 * recorded. A mail that can't be sent is retried with growing delays until its event is a day old; one that the mail
 * server refuses permanently is logged. One of several notifiers is active. It waits while a store is unavailable, and
 * rejects with other errors of the subscription.
 */
export async function runNotifier(options: NotifierOptions): Promise<void> {
  const { store, coordination, holder, log, signal } = options;
  const notifier = new Notifier(options);
  await follow({
    component: 'notices',
    store,
    streams: [ACCOUNT_STREAMS],
    log,
    signal,
    lease: { coordination, lease: NOTICES, holder, ttlMs: LEASE_MS },
    checkpoint: () => notifier.begin(),
    async handle(batch, until) {
      await notifier.take(batch, until);
      return 'next';
    },
  });
}

type Place = Pick<MadeFrom, 'position' | 'anchor'>;
const START: Place = { position: 0, anchor: undefined };

/** An event of which not everybody was notified yet. */
interface WaitingEvent {
  readonly event: RecordedEvent;
  /** The place before the event in the log. The checkpoint does not move beyond it while the event waits. */
  readonly before: Place;
  failures: number;
  dueAtMs: number;
}

class Notifier {
  readonly #options: NotifierOptions;
  #storeId = '';
  #place = START;
  /** The events that wait, in the order of the log. */
  readonly #waiting = new Map<Position, WaitingEvent>();
  /** The notices that were mailed and could not be recorded yet, by event and audience. A retry only records them. */
  readonly #unrecorded = new Set<string>();
  #saved = { position: -1, atMs: Number.NEGATIVE_INFINITY };

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** Returns where to continue. The whole log is read again if the checkpoint belongs to another log. */
  async begin(): Promise<Position> {
    const { store, coordination, clock, steady, log } = this.#options;
    this.#storeId = await storeIdentity(store, clock);
    await timeForAges(store, clock, steady); // before a clock that jumps can have recorded anything
    const found = await coordination.checkpoint(NOTICES);
    const mismatch = found && (await mismatchOf(found, { store, storeId: this.#storeId }));
    if (mismatch !== undefined)
      log.warn(`the checkpoint of the notices ${mismatch}: every account event is read again`);
    const usable = mismatch === undefined ? found : undefined;
    this.#place = usable === undefined ? START : { position: continuesAfter(usable), anchor: usable.anchor };
    this.#saved = { position: usable?.position ?? -1, atMs: Number.NEGATIVE_INFINITY };
    this.#waiting.clear();
    return this.#place.position;
  }

  async take({ events, checkpoint }: SubscriptionBatch, until: AbortSignal): Promise<void> {
    const nowMs = await this.#timeForAges(events);
    for (const event of events) {
      if (isNoticeType(event.type) && !isOld(event, nowMs))
        this.#waiting.set(event.position, { event, before: this.#place, failures: 0, dueAtMs: 0 });
      this.#place = { position: event.position, anchor: anchorOf([event]) ?? this.#place.anchor };
    }
    this.#place = { ...this.#place, position: Math.max(this.#place.position, checkpoint) };
    await this.#work(until);
    while (this.#waiting.size >= MAX_WAITING && !until.aborted) {
      await pause(FULL_PAUSE_MS, until);
      await this.#work(until);
    }
    if (!until.aborted) await this.#save();
  }

  /** Notifies of the events that are due, in order. */
  async #work(until: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (const [position, waiting] of this.#waiting) {
      if (until.aborted) return;
      // A time that is further away comes from a clock that was ahead.
      const isLater = waiting.dueAtMs > clock.now() && waiting.dueAtMs <= clock.now() + MAX_RETRY_MS;
      if (isLater || !(await this.#tryToNotify(waiting, until))) continue;
      this.#waiting.delete(position);
    }
  }

  async #save(): Promise<void> {
    const [first] = this.#waiting.values();
    const place = first?.before ?? this.#place;
    const nowMs = steadyClock.now();
    if (place.position <= this.#saved.position || nowMs - this.#saved.atMs < SAVE_MS) return;
    const { position, anchor } = place;
    await this.#options.coordination.moveCheckpoint(NOTICES, { storeId: this.#storeId, position, anchor });
    this.#saved = { position, atMs: nowMs };
  }

  /** Returns true if the event no longer has to wait. Rejects while a store is unavailable. */
  async #tryToNotify(waiting: WaitingEvent, until: AbortSignal): Promise<boolean> {
    const { clock, log } = this.#options;
    try {
      return await this.#notify(waiting, until);
    } catch (error) {
      const kind = errorKind(error);
      if (kind === 'unavailable' || kind === 'closed') throw error;
      const delayMs = Math.min(FIRST_RETRY_MS * 2 ** waiting.failures, MAX_RETRY_MS);
      waiting.failures += 1;
      waiting.dueAtMs = clock.now() + delayMs;
      const { stream, type, position } = waiting.event;
      log.warn({ err: error, stream, type, position, delayMs }, 'a notice could not be mailed yet: retrying');
      return false;
    }
  }

  /** Like `#tryToNotify`, but rejects with anything that calls for a retry. */
  async #notify(waiting: WaitingEvent, until: AbortSignal): Promise<boolean> {
    const { operatorEmail, store } = this.#options;
    const { event } = waiting;
    const nowMs = await this.#timeForAges([event]);
    if (isOld(event, nowMs)) return this.#giveUp(waiting);
    const skipped = await readSkipped(store);
    const read = readAccountEvent(event, skipped);
    if (!read.ok) throw new Error(`the event cannot be read: ${read.reason}`);
    if (!isNoticeType(read.event.type)) return true; // skipped by the operator
    const account = await this.#account(event, skipped);
    const recorded = await this.#recorded(account.now.id, event.id);
    for (const notice of noticesFor(read, account, { operatorEmail, nowMs })) {
      if (until.aborted) return false;
      if (recorded.has(notice.audience)) continue;
      const mail = `${event.id} ${notice.audience}`;
      if (!this.#unrecorded.has(mail)) await this.#send(notice);
      this.#unrecorded.add(mail);
      await this.#record(notice, event.id);
      this.#unrecorded.delete(mail);
    }
    return true;
  }

  #giveUp({ event: { stream, position, type }, failures }: WaitingEvent): true {
    if (failures === 0) return true; // this process has not tried
    this.#options.givenUp.inc();
    this.#options.log.error(
      { stream, position, type },
      'a notice could not be mailed for a day: it is given up',
    );
    return true;
  }

  /** Returns the time by which the age of these events is judged. It reads the log only if one of them seems old. */
  async #timeForAges(events: readonly RecordedEvent[]): Promise<number> {
    const { store, clock, steady } = this.#options;
    const nowMs = clock.now();
    const seemsOld = (event: RecordedEvent): boolean => isNoticeType(event.type) && isOld(event, nowMs);
    return events.some(seemsOld) ? timeForAges(store, clock, steady) : nowMs;
  }

  async #send(notice: Notice): Promise<void> {
    const { mailer, log, givenUp } = this.#options;
    const { accountId: account, prefix: key, kind, audience } = notice;
    const of = { account, key, kind, audience };
    const result = await mailer.send({ to: notice.to, ...noticeText(notice) });
    if (result.kind === 'refused') {
      givenUp.inc();
      log.error({ ...of, reason: result.reason }, 'a notice was refused by the mail server');
    } else if (result.kind === 'sent') {
      log.info({ ...of, rejected: result.rejected }, 'notice mailed');
    } else {
      log.warn(of, 'notice not mailed: FUEL_SMTP_URL is not set');
    }
  }

  /** The account now, and as of the event. Rejects if an event of it can't be read. */
  async #account(
    at: RecordedEvent,
    skipped: SkippedEvents,
  ): Promise<{ now: Account; atEvent: Account | undefined }> {
    const events = await this.#options.store.readStream(at.stream);
    const until = events.findIndex(({ revision }) => revision === at.revision) + 1;
    const [now, atEvent] = [events, events.slice(0, until)].map((history) => foldRecorded(history, skipped));
    if (now === undefined || 'fault' in now || now.account === undefined)
      throw new Error(`the stream ${at.stream} cannot be read to its end`);
    return { now: now.account, atEvent: atEvent && 'account' in atEvent ? atEvent.account : undefined };
  }

  /** The audiences that any process has notified of this event. */
  async #recorded(accountId: number, eventId: string): Promise<Set<Notice['audience']>> {
    const audiences = new Set<Notice['audience']>();
    for (const event of await this.#options.store.readStream(noticesStream(accountId))) {
      const decoded = decodeStrict(event);
      if (!decoded.ok || decoded.type !== 'NoticeSent') continue;
      const { data } = decoded as Extract<OperationsEvent, { type: 'NoticeSent' }>;
      if (data.event_id === eventId) audiences.add(data.audience);
    }
    return audiences;
  }

  async #record({ accountId, audience }: Notice, eventId: string): Promise<void> {
    const { store, clock } = this.#options;
    const data = { account_id: accountId, event_id: eventId, audience };
    const events = [newEvent({ type: 'NoticeSent', data }, AUTHOR, clock.now())];
    await store.append([{ stream: noticesStream(accountId), expected: 'any', events }]);
  }
}

function isOld(event: RecordedEvent, nowMs: number): boolean {
  return nowMs - occurredAtMs(event) > NOTICE_MAX_AGE_MS;
}
