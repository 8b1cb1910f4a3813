import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { accountFigures } from '../../../src/operator/accounts/account-figures.ts';
import { known, shared } from '../../../src/operator/console/figures/known.ts';
import { render } from '../../../src/operator/console/html/html.ts';
import type { PageContext } from '../../../src/operator/console/html/layout.ts';
import { keyPage } from '../../../src/operator/console/pages/key.ts';
import { webhooksPage } from '../../../src/operator/console/pages/webhooks.ts';
import type { Table } from '../../../src/operator/print/document.ts';
import {
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  rateSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import { answered, claimOptions, newDelivery, retryAt } from '../../support/deliveries/deliveries.ts';
import { queueInMemory } from '../../support/deliveries/open-queue.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const NOW_MS = Date.parse('2026-09-10T00:00:00.000Z');
const withWebhook = [
  opened(),
  { type: 'IntegrationEnabled', data: { account_id: 7 } },
  profileSet('2026-01-01T00:00:00.000Z', null),
  keyIssued(),
  webhookSet(),
] as const;

test('webhooks are listed in pages: those that are switched off, those that fail, then the others', async () => {
  const on = (prefix: string) => [keyIssued({ prefix }), webhookSet({ prefix })];
  const off = (prefix: string) => {
    const { type, data } = onKey('WebhookDisabled');
    return [...on(prefix), { type, data: { ...data, prefix } }];
  };
  const others = Array.from({ length: 60 }, (_, n) => `other${n + 10}`);
  const accounts = await rowsAfter(opened(), ...[...others, 'bad'].flatMap(on), ...off('out'), ...off('off'));
  const failing = [{ prefix: 'bad', failedInARow: 1, failingSinceMs: NOW_MS, lastAnswers: [] }];
  const figures = {
    accounts: async () => ({ value: await accountFigures(accounts) }),
    failing: async () => ({ value: failing }),
  };
  const listed = async (query: PageContext['query']) => {
    const page = await webhooksPage({ parts: { accounts }, figures, query } as never);
    const list = page.parts.find((part) => part !== null && 'rows' in part) as Table | undefined;
    return list?.rows.map(({ id }) => id.replace('webhooks-', ''));
  };
  expect(await listed({})).toEqual(['off', 'out', 'bad', ...others.slice(0, 47)]);
  expect(await listed({ after: 'other56' })).toEqual(others.slice(47));
  expect(await listed({ state: 'active', after: 'other59' })).toEqual(others.slice(50));
  expect(await listed({ after: 'gone' })).toEqual(['off', 'out', 'bad', ...others.slice(0, 47)]);
  expect(await listed({ state: 'failing' })).toEqual(['bad']);
});

test('the page of a webhook shows its rate, its waiting deliveries and how long its receiver asked to wait', async () => {
  const clock = { now: () => NOW_MS };
  const queue = queueInMemory(new MemoryStores(), new FakeClock());
  const owed = [1, 2, 3].map((n) => newDelivery(n, { prefix: PREFIX, createdAtMs: NOW_MS - 5_000 }));
  const [first, ...others] = await queue.enqueue(
    owed,
    claimOptions(NOW_MS - 1_000, { laneCapacity: () => 2 }),
  );
  if (first === undefined) throw new Error('no delivery was claimed');
  expect(others).toHaveLength(1);
  await queue.report([retryAt(first, NOW_MS - 500, NOW_MS + 60_000, answered(429, '20'))]);
  const store = { readStream: async () => [] };
  const engines = { requests: () => ({ lastUses: async () => new Map() }) };
  const parts = { accounts: await rowsAfter(...withWebhook, rateSet(20)), queue, store, clock, engines };
  const page = await keyPage({ parts, name: PREFIX } as unknown as PageContext);
  const text = page.parts.flatMap((part) => (part !== null && 'type' in part ? render(part) : [])).join('');
  for (const [name, value] of [
    ['Rate per second', '20'],
    ['Under way', '1'],
    ['Answer', '250 ms'],
    ['Waiting', '1'],
  ])
    expect(text).toContain(`<dt>${name}</dt><dd>${value}</dd>`);
  expect(text).toMatch(/<dt>Asked to wait until<\/dt><dd><time [^>]*2026-09-10T00:00:19\.750Z/);
});

describe('what is known', () => {
  test('is a value with its time, or the reason why it is not known; a fault of the program is neither', async () => {
    const now = (): number => 5;
    expect(await known(async () => 1, now)).toEqual({ value: 1, atMs: 5 });
    const away = new FuelError('STORE_UNAVAILABLE', 'mongodb is away');
    expect(await known(() => Promise.reject(away), now)).toEqual({ unknown: 'mongodb is away' });
    expect(await known(() => new Promise(() => undefined), now, 1)).toEqual({
      unknown: 'the store does not answer',
    });
    await expect(known(() => Promise.reject(new TypeError('broken')), now)).rejects.toThrow('broken');
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    await known(async () => 1, now);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is read once for everybody who asks in its time, and again after a failure', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let [reads, fails] = [0, true];
    const read = shared(
      async () => {
        reads += 1;
        if (fails) throw new Error('away');
        return reads;
      },
      { ageMs: 2_000, maxAgeMs: 5_000 },
    );
    await expect(Promise.all([read(), read()])).rejects.toThrow('away');
    expect(reads).toBe(1);
    fails = false;
    expect(await Promise.all([read(), read(), read()])).toEqual([2, 2, 2]);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(await read()).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(await read()).toBe(3);
  });

  test('is read less often if that takes long: after fifty times as long, or at its greatest age', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const readsAfter = async (lengthMs: number, restMs: number): Promise<number> => {
      let reads = 0;
      const read = shared(
        async () => {
          reads += 1;
          await new Promise((resolve) => setTimeout(resolve, lengthMs));
        },
        { ageMs: 2_000, maxAgeMs: 5_000 },
      );
      void read();
      await vi.advanceTimersByTimeAsync(lengthMs + restMs);
      void read();
      return reads;
    };
    expect([await readsAfter(40, 1_999), await readsAfter(40, 2_000)]).toEqual([1, 2]);
    expect([await readsAfter(80, 3_999), await readsAfter(80, 4_000)]).toEqual([1, 2]);
    expect([await readsAfter(9_000, 4_999), await readsAfter(9_000, 5_000)]).toEqual([1, 2]);
  });
});
