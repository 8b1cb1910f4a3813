import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { backoff, retryWhileUnavailable } from '../../src/base/retry.ts';
import { memoryLog } from '../support/service/api.ts';

const unavailable = (): Error => new FuelError('STORE_UNAVAILABLE', 'no server answers');

/** Retries whose waits take no time and are recorded. */
function retrying() {
  const lines: Record<string, unknown>[] = [];
  const stopping = new AbortController();
  const waits: number[] = [];
  const options = {
    log: memoryLog(lines),
    signal: stopping.signal,
    component: 'projector',
    fields: { group: 'g' },
    sleep: async (ms: number) => {
      waits.push(ms);
      await nextTurn();
    },
  };
  return { lines, stopping, waits, options, messages: () => lines.map(({ msg }) => msg) };
}

describe('a backoff', () => {
  test('doubles from the first wait to the longest', () => {
    expect([...backoff({ firstMs: 100, maxMs: 500 }).take(5)]).toEqual([100, 200, 400, 500, 500]);
  });

  test('with jitter takes at least half of each wait, and not always the same', () => {
    const taken = [...backoff({ firstMs: 1_000, maxMs: 1_000, jitter: true }).take(50)];
    expect(Math.min(...taken)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...taken)).toBeLessThanOrEqual(1_000);
    expect(new Set(taken).size).toBeGreaterThan(1);
  });
});

describe('work that needs a store', () => {
  test.each(['STORE_UNAVAILABLE', 'STORE_BUSY'] as const)(
    'is tried again after %s, and the log says once that it waits and once that it continues',
    async (code) => {
      const { options, waits, lines, messages } = retrying();
      let tries = 0;
      const done = await retryWhileUnavailable(async () => {
        if (++tries < 4) throw new FuelError(code, 'not now');
        return 'done';
      }, options);
      expect([done, tries, waits.length]).toEqual(['done', 4, 3]);
      expect(messages()).toEqual([
        'projector waits: a store is unavailable',
        'projector continues: the store is available again',
      ]);
      expect(lines[0]).toMatchObject({ level: 40, reason: 'not now', group: 'g' });
    },
  );

  test('is given up at once for any other error, which is handed on as it is', async () => {
    const { options, waits, lines } = retrying();
    const errors = [
      new TypeError('a fault'),
      new FuelError('ITEM_REFUSED', 'too large'),
      new FuelError('STORE_CLOSED', 'closed'),
    ];
    for (const error of errors) {
      const failing = retryWhileUnavailable(() => Promise.reject(error), options);
      await expect(failing).rejects.toBe(error);
    }
    expect([waits, lines]).toEqual([[], []]);
  });

  test('that lasts begins with the first wait again each time that the store had answered it', async () => {
    const { options, waits, messages } = retrying();
    let tries = 0;
    await retryWhileUnavailable(async (available) => {
      if (++tries === 12) return;
      if (tries % 2 === 0) available();
      throw unavailable();
    }, options);
    expect(Math.max(...waits)).toBeLessThanOrEqual(400);
    expect(messages().filter((message) => String(message).includes('continues'))).toHaveLength(6);
  });

  test('is given up with the error of the store where that is unavailable for longer than was allowed', async () => {
    const { options, messages } = retrying();
    const error = unavailable();
    const failing = retryWhileUnavailable(() => Promise.reject(error), { ...options, maxUnavailableMs: 20 });
    await expect(failing).rejects.toBe(error);
    expect(messages()).toEqual(['projector waits: a store is unavailable']);
  });

  test('ends without a result when it is aborted, before it begins and while it waits', async () => {
    const { options, stopping } = retrying();
    let tries = 0;
    const ended = await retryWhileUnavailable(async () => {
      if (++tries === 3) stopping.abort();
      throw unavailable();
    }, options);
    expect([ended, tries]).toEqual([undefined, 3]);
    expect(await retryWhileUnavailable(async () => 'done', options)).toBeUndefined();
  });

  test('is waited for before the next try, and each outage has its line at its begin and its end', async () => {
    const { options, messages } = retrying();
    const steps: string[] = [];
    const sleep = async (): Promise<void> => {
      await nextTurn();
      steps.push('waited');
    };
    await retryWhileUnavailable(
      async (available) => {
        available();
        if (steps.push('tried') < 4) throw unavailable();
      },
      { ...options, sleep },
    );
    expect(steps).toEqual(['tried', 'waited', 'tried', 'waited', 'tried']);
    const [begin, end] = [
      'projector waits: a store is unavailable',
      'projector continues: the store is available again',
    ];
    expect(messages()).toEqual([begin, end, begin, end]);
  });

  test('of another kind ends nothing where the work was aborted: the fault may be its end', async () => {
    const { options, stopping, lines } = retrying();
    const ended = retryWhileUnavailable(async () => {
      stopping.abort();
      throw new TypeError('cut off');
    }, options);
    expect([await ended, lines]).toEqual([undefined, []]);
  });
});
