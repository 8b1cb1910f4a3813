import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { VISIBLE_STATUSES } from '../../../src/domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../src/domain/values/date-time.ts';
import { MemoryLog, openMemoryEventStore } from '../../../src/engines/memory/event-store.ts';
import { MemoryView, openMemoryView } from '../../../src/engines/memory/view.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { type PastQuery, rowsAt } from '../../../src/operator/as-of/transactions-at.ts';
import { projectEvent } from '../../../src/pull/record/project-event.ts';
import { listRows } from '../../../src/pull/view/list-rows.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { cancelled, confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.parse('2026-09-01T00:00:00Z');

interface Step {
  readonly id: number;
  readonly account: number;
  readonly what: typeof confirmed;
  readonly corporate: number;
  /** Of the day on which it was created: several are created at one time. */
  readonly day: number;
}

const steps = fc.array(
  fc.record({
    id: fc.integer({ min: 1, max: 12 }),
    account: fc.constantFrom(7, 7, 7, 8),
    what: fc.constantFrom(confirmed, confirmed, external, voided, cancelled),
    corporate: fc.constantFrom(31, 32),
    day: fc.integer({ min: 1, max: 4 }),
  }),
  { maxLength: 40 },
);

/** A log with one step an hour, and the view of it. Steps that can't follow those before are parked, or change nothing. */
async function recorded(all: readonly Step[]) {
  const clock = new FakeClock();
  clock.advance(START_MS - clock.now());
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const view = openMemoryView(new MemoryView(), clock);
  for (const { id, account, what, corporate, day } of all) {
    const { type, data } = what(id, { account_id: account });
    const record = {
      ...data,
      corporate: { id: corporate, name: 'Depot' },
      created_at: `2026-08-0${day}T08:00:00.000Z`,
    };
    const event = { type, data: 'created_at' in data ? record : data } as unknown as DomainEvent;
    const events = [newEvent(event, { actor: 'ada', command: 'test' }, clock.now())];
    await store.append([{ stream: `transaction-${id}`, expected: 'any', events }]);
    clock.advance(HOUR_MS);
  }
  const { events } = await store.readBackwards({ prefixes: [], limit: 1_000 });
  const { generation } = await view.reset('one', 0);
  await view.apply([...events].reverse().map(projectEvent), { generation, position: await store.head() });
  return { store, view };
}

async function all(rows: AsyncIterable<{ readonly id: number; readonly head: unknown }>, limit: number) {
  const found: string[] = [];
  for await (const { id, head } of rows) if (found.push(`${id} ${head}`) === limit) break;
  return found;
}

const query = (view: TransactionsView, { atMs: _, isWanted: __, limit, ...page }: PastQuery) =>
  all(listRows(view, page), limit);

test('an account of a time is listed as the view of then listed it, whatever happened since', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.record({
        hour: fc.integer({ min: -1, max: 40 }),
        limit: fc.integer({ min: 1, max: 6 }),
        status: fc.constantFrom(VISIBLE_STATUSES, ['CONFIRMED'] as const),
        corporate: fc.constantFrom(undefined, 31),
        fromDay: fc.integer({ min: 1, max: 3 }),
      }),
      async (history, { hour, limit, status, corporate, fromDay }) => {
        const now = await recorded(history);
        const then = await recorded(history.slice(0, hour + 1));
        const wanted: PastQuery = {
          accountId: 7,
          atMs: START_MS + hour * HOUR_MS,
          fromMs: hour % 2 === 0 ? EARLIEST_MS : Date.parse(`2026-08-0${fromDay}T00:00:00Z`),
          toMs: LATEST_MS,
          statuses: status,
          references: { corporate_id: corporate },
          limit,
          isWanted: () => true,
        };
        const parts = { ...now, onProgress: () => undefined };
        expect(await all(rowsAt(wanted, parts), limit)).toEqual(await query(then.view, wanted));
      },
    ),
    { numRuns: 300 },
  );
});

test('a view that has not applied yet what withdrew a transaction lists it once', async () => {
  const step = { account: 7, corporate: 31, day: 1, id: 1 };
  const { store } = await recorded([
    { ...step, what: confirmed },
    { ...step, what: voided },
  ]);
  const { view } = await recorded([{ ...step, what: confirmed }]);
  const wanted = { accountId: 7, atMs: START_MS, fromMs: EARLIEST_MS, toMs: LATEST_MS, limit: 5 };
  const past = { ...wanted, statuses: VISIBLE_STATUSES, isWanted: () => true };
  const found = await all(rowsAt(past, { store, view, onProgress: () => undefined }), 5);
  expect(found.map((each) => each.split(' ')[0])).toEqual(['1']);
});
