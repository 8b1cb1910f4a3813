import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { type CheckedEngine, EngineHealth } from '../../../src/service/engines/engine-health.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { memoryLog } from '../../support/service/api.ts';

/** Engines that are unavailable while they are in `unavailable`, with a record of their checks. */
function engines() {
  const clock = new FakeClock();
  const unavailable = new Set<string>();
  const asked: string[] = [];
  const engine = (name: CheckedEngine['name']): CheckedEngine => ({
    name,
    serves: name === 'eventstoredb' ? ['events'] : ['tables'],
    ping: async () => {
      asked.push(name);
      if (unavailable.has(name)) throw new FuelError('STORE_UNAVAILABLE', `${name} does not answer`);
    },
  });
  const health = new EngineHealth([engine('eventstoredb'), engine('mongodb')], clock);
  return { clock, unavailable, asked, health };
}

describe('what is known of the engines', () => {
  test('is by name whether each answers or why not, asked at once', async () => {
    const { health, unavailable } = engines();
    unavailable.add('eventstoredb');
    expect(await health.state()).toEqual({ eventstoredb: 'eventstoredb does not answer', mongodb: true });
  });

  test('is nothing where everything is embedded', async () => {
    expect(await new EngineHealth([], new FakeClock()).state()).toEqual({});
  });

  test('is cached for a second, for all callers', async () => {
    const { health, unavailable, asked, clock } = engines();
    const both = [health.state(), health.state()];
    expect(await Promise.all(both)).toEqual([
      { eventstoredb: true, mongodb: true },
      { eventstoredb: true, mongodb: true },
    ]);
    unavailable.add('mongodb');
    clock.advance(1_000);
    expect(await health.state()).toEqual({ eventstoredb: true, mongodb: true });
    expect(asked).toHaveLength(2);
    clock.advance(1);
    expect(await health.state()).toEqual({ eventstoredb: true, mongodb: 'mongodb does not answer' });
    expect(asked).toHaveLength(4);
  });

  test('is not known where a check fails in another way', async () => {
    const broken = {
      name: 'mongodb',
      serves: [],
      ping: () => Promise.reject(new TypeError('a fault')),
    };
    await expect(new EngineHealth([broken], new FakeClock()).state()).rejects.toThrow('a fault');
  });
});

describe('the wait for all engines', () => {
  test('ends when each has answered, and the log says for which it was', async () => {
    const { health, unavailable, asked } = engines();
    const lines: Record<string, unknown>[] = [];
    unavailable.add('mongodb');
    const waiting = health.allReached(memoryLog(lines), new AbortController().signal);
    await expect.poll(() => asked.filter((name) => name === 'mongodb').length).toBeGreaterThan(1);
    unavailable.clear();
    await waiting;
    expect(asked.slice(0, 2)).toEqual(['eventstoredb', 'mongodb']);
    expect(lines.map(({ msg }) => msg)).toEqual([
      expect.stringContaining('start (mongodb) waits'),
      expect.stringContaining('start (mongodb)'),
    ]);
  });

  test('rejects with the reason of a signal that aborts meanwhile', async () => {
    const { health, unavailable, asked } = engines();
    unavailable.add('eventstoredb');
    const stopping = new AbortController();
    const waiting = health.allReached(memoryLog([]), stopping.signal);
    await expect.poll(() => asked.length).toBeGreaterThan(0);
    stopping.abort(new Error('asked to stop'));
    await expect(waiting).rejects.toThrow('asked to stop');
    expect(asked).not.toContain('mongodb');
  });
});
