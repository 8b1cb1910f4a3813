import { NOTICE_MAX_AGE_MS, type Notice, needsNotice, noticesFor } from '../../../projections/notices.ts';
import { foldRecorded, readAccountEvent } from '../../accounts/directory/apply-to-directory.ts';
import type { ReadAccountEvent } from '../../accounts/directory/fold/directory.ts';
import type { Clock } from '../../base/clock.ts';
import { errorKind, reasonOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Account } from '../../domain/account.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { noticesStream, type OperationsEvent } from '../../domain/operations-events.ts';
import { decodeStrict } from '../../event-store/codec.ts';
import type { EventStore, GroupConsumer, GroupEvent } from '../../event-store/event-store.ts';
import { newEvent } from '../../event-store/new-event.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';
import { followGroup, type GroupFollower } from '../follow-group.ts';
import type { Mailer } from './mailer.ts';
import { noticeText } from './notice-text.ts';

export const NOTICES_GROUP = 'notices';

const AUTHOR = { actor: 'system', command: 'notices' };
const BUFFER_SIZE = 100;
/** More than sending one mail takes, time-outs included. */
const ACK_TIMEOUT_MS = 120_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 5 * 60_000;

export interface NotifierOptions {
  readonly store: Pick<EventStore, 'readStream' | 'append'>;
  readonly subscriptions: GroupFollower['subscriptions'];
  readonly mailer: Mailer;
  readonly operatorEmail: string | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts the notices that nobody will get. */
  readonly givenUp: { inc(): void };
  readonly signal: AbortSignal;
}

/**
 * Mails the notices of account events until the signal aborts: each once, and once more only where its `NoticeSent` could
 * not be recorded. A mail that can't be sent is retried with growing delays until its event is a day old; one that the
 * mail server refuses permanently is logged. Of several notifiers each event goes to one. While a store is unavailable it
 * waits; it rejects with other errors.
 */
export async function runNotifier(options: NotifierOptions): Promise<void> {
  const { subscriptions, signal, log } = options;
  const notifier = new Notifier(options);
  await followGroup({
    group: NOTICES_GROUP,
    settings: { prefixes: [ACCOUNT_STREAMS], ackTimeoutMs: ACK_TIMEOUT_MS },
    bufferSize: BUFFER_SIZE,
    component: 'notices',
    handle: (...handed) => notifier.handle(...handed),
    ...{ subscriptions, log, signal },
  });
}

class Notifier {
  readonly #options: NotifierOptions;
  /** By position, the audiences of an event that were notified: a retry leaves them out. */
  readonly #notified = new Map<number, Set<Notice['audience']>>();

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** Acknowledges together what needs no mail, so that a long history is skipped fast. */
  async handle(consumer: GroupConsumer, events: readonly GroupEvent[], until: AbortSignal): Promise<void> {
    const { silent = [], others = [] } = Object.groupBy(events, (handed) =>
      this.#needsNone(readAccountEvent(handed.event)) ? 'silent' : 'others',
    );
    for (const handed of silent) this.#logGivenUp(handed);
    await consumer.ack(silent);
    for (const handed of others) {
      if (until.aborted) return; // the rest is handed out again
      await this.#notifyOrPark(consumer, handed);
    }
  }

  #needsNone(read: ReadAccountEvent): boolean {
    return read.ok && (!needsNotice(read.event) || this.#options.clock.now() - read.atMs > NOTICE_MAX_AGE_MS);
  }

  /** An event at which the program itself fails must not block the others. */
  async #notifyOrPark(consumer: GroupConsumer, handed: GroupEvent): Promise<void> {
    try {
      let read = readAccountEvent(handed.event);
      if (!read.ok) read = readAccountEvent(handed.event, await readSkipped(this.#options.store));
      // The directory logs it: an account that can't be read is not served until it is repaired.
      if (!read.ok) await consumer.park(handed, read.reason);
      else if (this.#needsNone(read)) await consumer.ack([handed]);
      else await this.#notify(consumer, handed, read);
    } catch (error) {
      const kind = errorKind(error);
      if (kind === 'unavailable' || kind === 'closed') throw error;
      const { stream, position, type } = handed.event;
      this.#options.log.error(
        { err: error, stream, position, type },
        'event parked: no notice is mailed for it',
      );
      await consumer.park(handed, reasonOf(error));
    }
  }

  async #notify(
    consumer: GroupConsumer,
    handed: GroupEvent,
    read: Extract<ReadAccountEvent, { ok: true }>,
  ): Promise<void> {
    const { operatorEmail, clock, log, signal } = this.#options;
    const { stream, position, type, id: eventId } = handed.event;
    const account = await this.#account(handed.event);
    if (account === undefined) {
      await consumer.park(handed, `the stream ${stream} can not be read to its end`);
      return;
    }
    const notified = this.#notified.get(position) ?? new Set();
    try {
      const recorded = await this.#recorded(account.now.id, eventId);
      for (const notice of noticesFor(read, account, { operatorEmail, nowMs: clock.now() })) {
        if (signal.aborted) throw new Error('the service stops');
        if (recorded.has(notice.audience)) continue;
        if (!notified.has(notice.audience)) await this.#send(notice);
        notified.add(notice.audience);
        await this.#record(notice, eventId);
      }
    } catch (error) {
      this.#notified.set(position, notified);
      const delayMs = Math.min(FIRST_RETRY_MS * 2 ** handed.retryCount, MAX_RETRY_MS);
      log.warn(
        { err: error, account: account.now.id, type, position, delayMs },
        'a notice could not be mailed yet: retrying',
      );
      await consumer.retry(handed, { reason: String(error), delayMs });
      return;
    }
    this.#notified.delete(position);
    await consumer.ack([handed]);
  }

  #logGivenUp({ event: { stream, position, type } }: GroupEvent): void {
    if (!this.#notified.delete(position)) return; // another process failed to mail it, and has ended
    this.#options.givenUp.inc();
    this.#options.log.error(
      { stream, position, type },
      'a notice could not be mailed for a day: it is given up',
    );
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

  /** The account now, and at the event; `undefined` where an event of it can't be read. */
  async #account(at: RecordedEvent): Promise<{ now: Account; atEvent: Account | undefined } | undefined> {
    const { store } = this.#options;
    const skipped = await readSkipped(store);
    const events = await store.readStream(at.stream);
    const until = events.findIndex(({ revision }) => revision === at.revision) + 1;
    const [now, atEvent] = [events, events.slice(0, until)].map((history) => foldRecorded(history, skipped));
    if (now === undefined || 'fault' in now || now.account === undefined) return undefined;
    return { now: now.account, atEvent: atEvent && 'account' in atEvent ? atEvent.account : undefined };
  }

  /** The audiences that were notified of this event, by this process or another. */
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
