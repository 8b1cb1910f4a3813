import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ClaimedDelivery, DeliveryReport, NewDelivery } from '../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import {
  claimFrom,
  claimOf,
  claimOptions,
  delivered,
  failed,
  newDelivery,
  retryAt,
} from '../support/deliveries/deliveries.ts';
import { DeliveryQueueModel } from '../support/deliveries/delivery-queue-model.ts';
import { listed } from '../support/deliveries/listed.ts';
import type { QueueUnderTest } from '../support/deliveries/queue-under-test.ts';
import type { FakeClock } from '../support/fake-clock.ts';

const PREFIXES: readonly string[] = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc'];
const prefix = fc.constantFrom(...PREFIXES);
const transaction = fc.integer({ min: 1, max: 6 });
const capacities = fc.array(fc.integer({ min: -1, max: 3 }), { minLength: 3, maxLength: 3 });
const reportKind = fc.constantFrom('delivered', 'retry', 'failed', 'ended', 'released');
const type = <T extends string>(name: T) => fc.constant(name);

const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: type('enqueue'),
      what: fc.array(fc.tuple(prefix, transaction), { minLength: 1, maxLength: 6 }),
      capacities: fc.option(capacities),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ type: type('claim'), limit: fc.integer({ min: 0, max: 8 }), capacities }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: type('report'),
      what: fc.array(fc.tuple(fc.nat(), reportKind), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ type: type('wait'), ms: fc.constantFrom(1, 400, 2_500, 5_000, 30_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: type('endLane'),
      prefix,
      which: fc.record({ before: fc.nat({ max: 5 }), redelivered: fc.boolean() }, { requiredKeys: [] }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: type('withdraw'), transactionId: transaction }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: type('redeliver'),
      what: fc.tuple(prefix, transaction),
      force: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: type('resetHealth'), prefix }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: type('purge'),
      ageMs: fc.constantFrom(0, 20_000),
      limit: fc.integer({ min: 0, max: 4 }),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** The time after which no more sequences are tried, so a busy machine tries fewer. */
const ENOUGH_MS = 15_000;

/** Any sequence of calls on two openings of one log, with late and repeated reports, has the answers of the model. */
export function deliveryQueueModelContract(
  open: () => Promise<QueueUnderTest>,
  { numRuns = 80 }: { readonly numRuns?: number } = {},
): void {
  test('the delivery queue answers as a naive model of its rules, whatever is done in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 50 }), async (operations) => {
        const { queue, again, clock } = await open();
        const other = again();
        try {
          const comparison = new Comparison([queue, other], clock);
          for (const next of operations) await comparison.run(next);
          await comparison.finish();
        } finally {
          await other.close();
          await queue.close();
        }
      }),
      { numRuns, interruptAfterTimeLimit: ENOUGH_MS },
    );
  });
}

class Comparison {
  readonly #model = new DeliveryQueueModel();
  readonly #openings: readonly DeliveryQueue[];
  readonly #clock: FakeClock;
  /** Every claim ever made. Any of them may be reported, even again or too late. */
  readonly #claims: ClaimedDelivery[] = [];
  #turn = 0;

  constructor(openings: readonly DeliveryQueue[], clock: FakeClock) {
    this.#openings = openings;
    this.#clock = clock;
  }

  async run(operation: Operation): Promise<void> {
    const queue = this.#openings[this.#turn++ % this.#openings.length] as DeliveryQueue;
    await this.#apply(queue, operation);
    const look = claimOptions(this.#clock.now());
    expect((await queue.heads(look)).nextAtMs).toBe(this.#model.nextAtMs(look.nowMs));
    for (const lane of PREFIXES) expect(await queue.health(lane)).toEqual(this.#model.health(lane));
  }

  async finish(): Promise<void> {
    const queue = this.#openings[0] as DeliveryQueue;
    const found = await listed(queue);
    expect(found.map(({ id }) => id).sort()).toEqual([...this.#model.entries.keys()].sort());
    for (const [id, { shown }] of this.#model.entries) expect(await queue.find(id)).toEqual(shown);
  }

  async #apply(queue: DeliveryQueue, operation: Operation): Promise<void> {
    const nowMs = this.#clock.now();
    switch (operation.type) {
      case 'wait':
        return this.#clock.advance(operation.ms);
      case 'enqueue':
        return this.#enqueue(queue, operation);
      case 'claim': {
        const options = claimOptions(nowMs, {
          limit: operation.limit,
          laneCapacity: of(operation.capacities),
        });
        const claimed = await claimFrom(queue, options);
        expect(this.#model.claim(claimed, options)).toBeUndefined();
        this.#claims.push(...claimed);
        return;
      }
      case 'report': {
        if (this.#claims.length === 0) return;
        const reports = operation.what.map(([index, kind]) =>
          reportOf(this.#claims[index % this.#claims.length] as ClaimedDelivery, kind, nowMs),
        );
        expect(await queue.report(reports)).toEqual(this.#model.report(reports, nowMs));
        return;
      }
      case 'endLane':
        expect(
          await queue.change(
            { kind: 'end lane', prefix: operation.prefix, reason: 'off', ...operation.which },
            nowMs,
          ),
        ).toBe(this.#model.endLane(operation.prefix, 'off', nowMs, operation.which));
        return;
      case 'withdraw':
        await queue.change({ kind: 'withdraw', transactionIds: [operation.transactionId] }, nowMs);
        return this.#model.withdraw(operation.transactionId, nowMs);
      case 'redeliver': {
        const delivery = this.#delivery(operation.what);
        const request = { force: operation.force, dueAtMs: nowMs + 100 };
        expect(await queue.redeliver(delivery, request)).toBe(this.#model.redeliver(delivery.id, request));
        return;
      }
      case 'resetHealth':
        await queue.change({ kind: 'enabled', prefix: operation.prefix, atMs: nowMs }, nowMs);
        return this.#model.resetHealth(operation.prefix, nowMs);
      case 'purge':
        return this.#purge(queue, nowMs - operation.ageMs, operation.limit);
      default:
        return operation satisfies never;
    }
  }

  async #enqueue(queue: DeliveryQueue, operation: Extract<Operation, { type: 'enqueue' }>): Promise<void> {
    const deliveries = operation.what.map((what) => this.#delivery(what));
    const options =
      operation.capacities === null
        ? undefined
        : claimOptions(this.#clock.now(), { laneCapacity: of(operation.capacities) });
    const claimed = await queue.enqueue(deliveries, options);
    const fresh = deliveries.filter((delivery) => this.#model.enqueue(delivery));
    for (const lane of PREFIXES) {
      const owed = fresh.filter((delivery) => delivery.prefix === lane).length;
      const got = claimed.filter((claim) => claim.prefix === lane && fresh.some(({ id }) => id === claim.id));
      const most = Math.min(owed, Math.max(0, options?.laneCapacity(lane) ?? 0));
      if (fresh.length === deliveries.length) expect(got).toHaveLength(most);
      else expect(got.length).toBeLessThanOrEqual(most); // a slot may have been kept for one that was there
    }
    expect(this.#model.take(claimed, this.#clock.now() + 5_000)).toBeUndefined();
    this.#claims.push(...claimed);
  }

  async #purge(queue: DeliveryQueue, endedBeforeMs: number, limit: number): Promise<void> {
    const before = [...this.#model.entries.keys()];
    const removed = await queue.change({ kind: 'purge', retentionMs: 0, limit }, endedBeforeMs);
    const left = new Set((await listed(queue)).map(({ id }) => id));
    const gone = before.filter((id) => !left.has(id));
    expect(gone).toHaveLength(removed);
    expect(this.#model.purge(gone, endedBeforeMs, limit)).toBeUndefined();
  }

  #delivery([lane, transactionId]: readonly [string, number]): NewDelivery {
    const accountId = lane === PREFIXES[2] ? 8 : 7;
    return newDelivery(transactionId, { prefix: lane, accountId, createdAtMs: this.#clock.now() });
  }
}

function of(values: readonly number[]): (prefix: string) => number {
  return (prefix) => values[PREFIXES.indexOf(prefix)] ?? 0;
}

function reportOf(
  claim: ClaimedDelivery,
  kind: typeof reportKind extends fc.Arbitrary<infer T> ? T : never,
  nowMs: number,
): DeliveryReport {
  if (kind === 'delivered') return delivered(claim, nowMs);
  if (kind === 'retry') return retryAt(claim, nowMs, nowMs + 30_000);
  if (kind === 'failed') return failed(claim, nowMs);
  if (kind === 'ended') return { kind: 'failed', ...claimOf(claim), attempt: null, reason: 'off' };
  return { kind: 'released', ...claimOf(claim) };
}
