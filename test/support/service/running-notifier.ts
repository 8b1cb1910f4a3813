import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { EventStore, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { createMailer, type Mailer } from '../../../src/push/notices/mailer.ts';
import { NOTICES, runNotifier } from '../../../src/push/notices/notifier.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../accounts/account-samples.ts';
import { memoryCoordination } from '../engines/coordination.ts';
import { MemoryLog, openMemoryEventStore } from '../engines/memory-log.ts';
import { FakeClock } from '../fake-clock.ts';
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
const HEARTBEAT_MS = 5;

export const contactsSet = (...emails: string[]): AccountEvent => ({
  type: 'AccountContactsSet',
  data: { account_id: 7, emails },
});

/** The hooks between a notifier and its stores and mail server. */
interface NotifierThrough {
  readonly store?: (store: EventStore) => EventStore;
  readonly coordination?: (coordination: Coordination) => Coordination;
  readonly send?: (send: Mailer['send']) => Mailer['send'];
  readonly holder?: string;
}

/** Makes stores in memory with an account that has contacts and a webhook, and starts notifiers on them. */
export async function startNotifier({ smtpUrl }: { readonly smtpUrl?: string } = {}) {
  const clock = new FakeClock();
  let log = new MemoryLog();
  let store = openMemoryEventStore(log, clock);
  let coordination = memoryCoordination(clock);
  const lines: Record<string, unknown>[] = [];
  const mailer = createMailer({
    FUEL_SMTP_URL: smtpUrl,
    FUEL_MAIL_FROM: 'notices@fuel.example',
    FUEL_OPERATOR_EMAIL: OPERATOR,
  });
  const record = async (...events: AccountEvent[]): Promise<void> => {
    const recorded = events.map((event) => newEvent(event, { actor: 'test', command: 'test' }, clock.now()));
    await store.append([{ stream: 'account-7', expected: 'any', events: recorded }]);
  };
  const recordAccount = async (): Promise<void> => {
    await storeIdentity(store, clock);
    await record(opened(), contactsSet(...CONTACTS), keyIssued({ label: 'ERP' }), webhookSet());
  };
  await recordAccount();
  let givenUp = 0;
  const ends: (() => Promise<void>)[] = [];
  onTestFinished(async () => {
    for (const end of ends) await end().catch(() => undefined); // `ended` reports it
    mailer.close();
    await coordination.close();
    await store.close();
  });

  function run({ holder = 'one', ...through }: NotifierThrough = {}) {
    const same = <T>(given: T): T => given;
    const stopping = new AbortController();
    const send = (through.send ?? same)((mail) => mailer.send(mail));
    const ended = runNotifier({
      store: withHeartbeats((through.store ?? same)(store)),
      coordination: (through.coordination ?? same)(coordination),
      mailer: { send, close: () => undefined },
      holder,
      operatorEmail: OPERATOR,
      clock,
      steady: clock,
      log: memoryLog(lines),
      givenUp: { inc: () => void givenUp++ },
      signal: stopping.signal,
    });
    ended.catch(() => undefined); // tests await it if they need to
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended;
    };
    ends.push(stop);
    return { ended, stop, abort: () => stopping.abort() };
  }

  return {
    clock,
    lines,
    record,
    run,
    get coordination(): Coordination {
      return coordination;
    },
    get store(): EventStore {
      return store;
    },
    /** Resolves once the log has this many lines with the text. */
    logged: (text: string, count = 1) =>
      vi.waitUntil(() => lines.filter(({ msg }) => String(msg).includes(text)).length >= count, WAIT),
    checkpoint: () => coordination.checkpoint(NOTICES),
    /** True if the checkpoint has reached the account's last event. */
    async isDone(): Promise<boolean> {
      const last = (await store.readStream('account-7')).at(-1);
      const place = await coordination.checkpoint(NOTICES);
      return last !== undefined && place !== undefined && place.position >= last.position;
    },
    /** Returns the audiences of the recorded notices. */
    async sent(): Promise<unknown[]> {
      const events = await store.readStream('notices-7');
      return events.map(({ data }) => (data as { audience: string }).audience);
    },
    givenUp: () => givenUp,
    /** Removes the checkpoint, as after damage to `control.db` or on a copied store. */
    forgetCheckpoint(): void {
      coordination = memoryCoordination(clock);
    },
    /** Replaces the log with another one that has only the account. */
    async replaceLog(): Promise<void> {
      log = new MemoryLog();
      store = openMemoryEventStore(log, clock);
      await recordAccount();
    },
  };
}

/** Makes its subscriptions yield empty batches more often, so that no test waits for a second. */
function withHeartbeats(store: EventStore): EventStore {
  return {
    ...store,
    async *subscribe(options) {
      const batches = store.subscribe(options)[Symbol.asyncIterator]();
      try {
        let next = batches.next();
        let last: SubscriptionBatch | undefined;
        while (!options.signal.aborted) {
          const result = await Promise.race([next, sleep(HEARTBEAT_MS, 'nothing' as const)]);
          if (result === 'nothing') {
            if (last?.caughtUp) yield { ...last, events: [] };
            continue;
          }
          if (result.done) return;
          last = result.value;
          yield last;
          next = batches.next();
        }
      } finally {
        await batches.return?.();
      }
    },
  };
}
