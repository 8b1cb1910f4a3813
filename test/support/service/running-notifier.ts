import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished, vi } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { openSqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import type { PersistentSubscriptions } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { createMailer } from '../../../src/push/notices/mailer.ts';
import { runNotifier } from '../../../src/push/notices/notifier.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../accounts/account-samples.ts';
import { FakeClock } from '../fake-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { memoryLog } from './api.ts';

export const OPERATOR = 'operator@fuel.example';
export const CONTACTS = ['fleet@customer.example', 'it@customer.example'];
export const WAIT = { timeout: 5_000, interval: 10 };
export const DISABLED: AccountEvent = {
  type: 'WebhookDisabled',
  data: {
    account_id: 7,
    prefix: PREFIX,
    reason: '50 failed deliveries in a row',
    failed_in_a_row: 50,
    failing_since: '2026-09-01T10:00:00.000Z',
    last_answers: ['503', 'timeout: no answer within 500 ms'],
  },
};

export const contactsSet = (...emails: string[]): AccountEvent => ({
  type: 'AccountContactsSet',
  data: { account_id: 7, emails },
});

export interface NotifierOptions {
  readonly smtpUrl?: string;
  /** Stands between the notifier and its subscriptions. */
  readonly through?: (subscriptions: PersistentSubscriptions) => PersistentSubscriptions;
}

/** A notifier on stores of its own that hold an account with contacts and a webhook. */
export async function startNotifier({ smtpUrl, through = (given) => given }: NotifierOptions = {}) {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const subscriptions = openSqliteSubscriptions({
    path: join(folder, 'subscriptions.db'),
    store,
    clock,
    lookAtClockMs: 5,
  });
  const lines: Record<string, unknown>[] = [];
  const log = memoryLog(lines);
  const mailer = createMailer({
    FUEL_SMTP_URL: smtpUrl,
    FUEL_MAIL_FROM: 'notices@fuel.example',
    FUEL_OPERATOR_EMAIL: OPERATOR,
  });
  const record = async (...events: AccountEvent[]): Promise<void> => {
    const recorded = events.map((event) => newEvent(event, { actor: 'test', command: 'test' }, clock.now()));
    await store.append([{ stream: 'account-7', expected: 'any', events: recorded }]);
  };
  await record(opened(), contactsSet(...CONTACTS), keyIssued({ label: 'ERP' }), webhookSet());
  let stopping = new AbortController();
  let givenUp = 0;
  let running: Promise<void> | undefined;
  const faults: Error[] = [];
  const appendFaults: Error[] = [];
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
  };
  onTestFinished(async () => {
    await stop().catch(() => undefined); // `ended` has told
    mailer.close();
    await subscriptions.close();
    await store.close();
  });
  return {
    clock,
    lines,
    record,
    store,
    subscriptions,
    /** Resolves once the log holds a line that says so. */
    logged: (text: string) => vi.waitUntil(() => lines.some(({ msg }) => String(msg).includes(text)), WAIT),
    /** `onSent` gets each mail that was taken. */
    run(onSent: () => void = () => undefined): void {
      stopping = new AbortController();
      running = runNotifier({
        store: {
          readStream: async (...all) => {
            const fault = faults.shift();
            if (fault !== undefined) throw fault;
            return store.readStream(...all);
          },
          append: async (appends) => {
            const fault = appendFaults.shift();
            if (fault !== undefined) throw fault;
            return store.append(appends);
          },
        },
        subscriptions: through(subscriptions),
        mailer: {
          ...mailer,
          async send(mail) {
            const result = await mailer.send(mail);
            onSent();
            return result;
          },
        },
        operatorEmail: OPERATOR,
        clock,
        log,
        givenUp: { inc: () => void givenUp++ },
        signal: stopping.signal,
      });
      running.catch(() => undefined); // for whoever asks
    },
    ended: async (): Promise<void> => running,
    givenUp: () => givenUp,
    /** At its next look into a stream. */
    failOnce: (fault: Error) => void faults.push(fault),
    /** Asks it to stop; `stop` also waits until it has. */
    abort: () => stopping.abort(),
    /** As after a damaged `subscriptions.db`, or on a copied store. */
    async forgetSubscriptions(): Promise<void> {
      const db = new DatabaseSync(join(folder, 'subscriptions.db'));
      db.exec('DELETE FROM messages; DELETE FROM groups');
      db.close();
    },
    /** At its next record of a notice. */
    failRecordOnce: (fault: Error) => void appendFaults.push(fault),
    stop,
  };
}
