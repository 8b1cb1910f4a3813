import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { foldRecorded } from '../../src/accounts/read-account-event.ts';
import { foldAccount } from '../../src/accounts/rows/fold-account.ts';
import { type RecordedEvent, Unreadable } from '../../src/event-store/recorded-event.ts';
import { NONE_SKIPPED } from '../../src/event-store/skipped-events.ts';
import { applyBatch } from '../../src/pull/view/projector.ts';
import { AccountHistory } from '../../src/push/fan-out/account-history.ts';
import { FanOut } from '../../src/push/fan-out/fan-out.ts';
import { projectEvent } from '../../src/records/project-event.ts';
import { hashed } from '../../src/seals/leaves.ts';
import type { Chance } from '../simulation/core/chance.ts';
import { cancelled, confirmed, external, voided } from '../simulation/parts/lines.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  profileSet,
  rateSet,
  webhookSet,
} from '../support/accounts/account-samples.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { viewInMemory } from '../support/transactions/open-view.ts';
import { changedValue, forCases, nastyText, nastyValue } from './cases.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const NOW_MS = Date.parse('2026-09-15T12:00:00Z');
const clock = { now: () => NOW_MS };
const EVENTS = 12;
const GOOD_METADATA = { schema_version: 1, actor: 'core', command: 'core', at: '2026-09-15T12:00:00.000Z' };
/** A transaction that nobody else writes about. It is shown whatever else is in the log. */
const OWN = 999_999;
const ACCOUNT_EVENTS = [
  ...[
    opened(),
    groupAdded(),
    corporateAdded(3),
    profileSet('2026-09-01T00:00:00Z', null),
    keyIssued(),
    webhookSet(),
    rateSet(),
  ],
  ...(['KeySwitchedOff', 'KeySwitchedOn', 'WebhookEnabled'] as const).map(onKey),
];

interface Written {
  readonly stream: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
}

/** Returns an event as another writer might record it, right or wrong. */
function writtenBy(chance: Chance): Written {
  const isAccount = chance.is(0.4);
  const id = 1 + chance.int(4);
  const { type, data } = isAccount
    ? chance.pick(ACCOUNT_EVENTS)
    : chance.pick([confirmed, external, voided, cancelled])(chance.is(0.1) ? OWN : id, { account_id: 7 }); // perhaps in the stream of another one
  const stream = isAccount ? 'account-7' : `transaction-${id}`;
  return {
    stream: chance.is(0.9)
      ? stream
      : `${chance.pick(['transaction-', 'account-', 'operations', 'seals'])}${nastyText(chance)}`,
    type: chance.is(0.9) ? type : nastyText(chance),
    data: chance.is(0.05)
      ? new Unreadable('no JSON', { isDamage: chance.is(0.5) })
      : chance.is(0.4)
        ? data
        : chance.is(0.9)
          ? changedValue(chance, data)
          : nastyValue(chance),
    metadata: chance.is(0.7) ? GOOD_METADATA : changedValue(chance, GOOD_METADATA),
  };
}

function logOf(chance: Chance): RecordedEvent[] {
  const own: Written = {
    stream: `transaction-${OWN}`,
    ...confirmed(OWN, { account_id: 8 }),
    metadata: GOOD_METADATA,
  };
  const written = [...Array.from({ length: EVENTS }, () => writtenBy(chance)), own];
  const revisions = new Map<string, number>();
  return written.map((event, index) => {
    const revision = revisions.get(event.stream) ?? 0;
    revisions.set(event.stream, revision + 1);
    return { ...event, position: index + 1, revision, id: randomUUID(), recordedAtMs: NOW_MS };
  });
}

/** Makes a store that shows these events. Its other methods are not used here. */
function storeOf(events: readonly RecordedEvent[]) {
  const of = (stream: string): RecordedEvent[] => events.filter((event) => event.stream === stream);
  return {
    ...openMemoryEventStore(new MemoryLog(), clock),
    head: async () => events.length,
    readStream: async (stream: string) => of(stream),
    readStreams: async (streams: readonly string[]) => streams.map(of),
    readLast: async (stream: string) => of(stream).at(-1),
  };
}

test('what another writer stores is taken or parked with a reason, and never in the way of others', async () => {
  let parked = 0;
  let owed = 0;
  await forCases(
    'events',
    async (chance) => {
      const events = logOf(chance);
      const store = storeOf(events);
      const what = (): string => JSON.stringify(events);
      const view = viewInMemory(clock);
      const { generation } = await view.reset('store', 0);
      const ofTransactions = events.filter(({ stream }) => stream.startsWith('transaction-'));
      const taken = await applyBatch({ store, view }, generation, {
        events: ofTransactions,
        checkpoint: events.length,
      });
      if (taken === 'reset' || taken.some(({ reason }) => reason === ''))
        throw new Error(`no reason: ${what()}`);
      parked += taken.length;
      if ((await view.find([OWN])).get(OWN)?.shown?.accountId !== 8)
        throw new Error(`the other one is not shown as it was recorded: ${what()}`);
      const valid = ofTransactions.filter(
        (event) => event.revision === 0 && !('parkReason' in projectEvent(event)),
      );
      const wrongly = taken.find(({ position }) => valid.some((event) => event.position === position));
      const known = await view.find(valid.map(({ stream }) => Number(stream.slice('transaction-'.length))));
      if (wrongly !== undefined && known.size === 0)
        throw new Error(`parked, and valid: ${wrongly.reason}: ${what()}`);
      const ofAccount = await store.readStream('account-7');
      const folded = foldRecorded(ofAccount, NONE_SKIPPED);
      const terms = { skipped: NONE_SKIPPED, ownerOf: () => undefined };
      if ('fault' in folded !== (foldAccount(7, ofAccount, terms).unreadable !== undefined))
        throw new Error(`the account is read in two ways: ${what()}`);
      const accepted: unknown[] = [];
      const fanOut = new FanOut({
        store,
        clock,
        environment: 'staging',
        retentionMs: 864_000_000,
        queue: { change: async () => 0 },
        history: new AccountHistory({ store }),
        accept: async (deliveries) => void accepted.push(...deliveries),
      });
      const handed = ofTransactions.map((event) => ({ event, retryCount: 0 }));
      const results = await fanOut.handle(handed as never);
      if (results.length !== handed.length)
        throw new Error(`${results.length} of ${handed.length}: ${what()}`);
      owed += accepted.length;
      for (const { data, metadata, ...event } of events) {
        const isText = !(data instanceof Unreadable);
        if (isText)
          hashed({
            ...event,
            data: Buffer.from(JSON.stringify(data) ?? ''),
            metadata: Buffer.from(JSON.stringify(metadata) ?? ''),
          });
      }
      await view.close();
    },
    { inputs: EVENTS + 1 },
  );
  expect(parked).toBeGreaterThan(0);
  expect(owed).toBeGreaterThanOrEqual(0);
});
