import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { whileHolding } from '../../../src/base/coordination/while-holding.ts';
import { pause } from '../../../src/base/pause.ts';
import { memoryCoordination } from '../../support/engines/coordination.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { passingTime } from '../../support/steady-time.ts';
import { until } from '../../support/waiting.ts';

beforeEach(passingTime);

const TTL_MS = 3_000;
const unavailable = () => Promise.reject(new Error('unavailable'));

function start() {
  const clock = new FakeClock();
  const coordination = memoryCoordination(clock);
  onTestFinished(() => coordination.close());
  const stopping = new AbortController();
  const said: string[] = [];
  const write = (line: string): void => void said.push(JSON.parse(line).msg);
  const log = pino({ level: 'info' }, { write });
  const terms = {
    coordination: {
      acquire: (...given: Parameters<typeof coordination.acquire>) => coordination.acquire(...given),
      release: (lease: string, holder: string) => coordination.release(lease, holder),
    },
    lease: 'projector',
    holder: 'a',
    ttlMs: TTL_MS,
  };
  const work = { component: 'projector', log, signal: stopping.signal };
  return { clock, coordination, stopping, terms, work, said };
}

test('a lease is renewed while the work lasts and released at its end, and the result is the work’s', async () => {
  const { clock, coordination, terms, work } = start();
  const expiry = async () => (await coordination.holder('projector'))?.expiresAtMs ?? 0;
  const done = await whileHolding(terms, work, async (until) => {
    const before = await expiry();
    clock.advance(1_000);
    while ((await expiry()) === before) await pause(20, until);
    return (await expiry()) - before;
  });
  expect([done, await coordination.holder('projector')]).toEqual([{ result: 1_000 }, undefined]);
});

test('nothing is done while another has the lease, which is left to it', async () => {
  const { coordination, terms, work } = start();
  await coordination.acquire('projector', 'other', 60_000);
  expect(await whileHolding(terms, work, () => Promise.reject(new Error('worked')))).toBeUndefined();
  expect((await coordination.holder('projector'))?.holder).toBe('other');
});

test('the work ends when another has taken the lease, which is left to it', async () => {
  const { clock, coordination, terms, work, said } = start();
  await whileHolding(terms, work, async (until) => {
    clock.advance(TTL_MS);
    await coordination.acquire('projector', 'other', 60_000);
    await pause(60_000, until);
  });
  expect((await coordination.holder('projector'))?.holder).toBe('other');
  expect(said).toEqual(['projector lost its lease: another process has it']);
});

test('a renewal that fails is logged and retried, and the work continues', async () => {
  const { terms, work, said } = start();
  let calls = 0;
  const acquire = (): Promise<boolean> => {
    calls += 1;
    return calls === 2 ? unavailable() : Promise.resolve(true);
  };
  const coordination = { ...terms.coordination, acquire };
  await whileHolding({ ...terms, coordination }, work, async (until) => {
    while (calls < 3 && !until.aborted) await pause(20, until);
  });
  expect([calls, said]).toEqual([3, ['projector could not renew its lease: retrying']]);
});

test.each([
  ['fails', unavailable],
  ['gets no answer', () => new Promise<never>(() => undefined)],
])('the work ends before its lease can have ended when a renewal %s', async (_, renewal) => {
  const { terms, work, said } = start();
  let isRenewal = false;
  const slowly = async (): Promise<boolean> => {
    await pause(700, work.signal); // the lease may have been granted at the start of this
    return true;
  };
  const acquire = (): Promise<boolean> => (isRenewal ? renewal() : slowly());
  const startedAtMs = performance.now();
  const given = { ...terms, coordination: { ...terms.coordination, acquire } };
  const ended = Promise.withResolvers<number>();
  void whileHolding(given, work, async (until) => {
    isRenewal = true;
    await pause(60_000, until);
    ended.resolve(performance.now() - startedAtMs);
  });
  const lastedMs = await ended.promise;
  expect(lastedMs).toBeGreaterThan(TTL_MS / 2);
  expect(lastedMs).toBeLessThan(TTL_MS);
  expect(said.at(-1)).toBe('projector stops: it could not renew its lease in time');
});

test('work whose renewal begins when its lease may have ended already ends at once, and nothing is written about timers', async () => {
  const { terms, work, said } = start();
  const warnings: string[] = [];
  const warned = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', warned);
  onTestFinished(() => void process.off('warning', warned));
  const acquire = vi
    .fn()
    .mockResolvedValueOnce(true)
    .mockReturnValue(new Promise<never>(() => undefined));
  const coordination = { ...terms.coordination, acquire };
  // The first renewal, after a second, is later than half a second before the end of this lease.
  void whileHolding({ ...terms, ttlMs: 1_100, coordination }, work, async (until) => pause(60_000, until));
  await until(() => said.length > 0);
  expect(said).toEqual(['projector stops: it could not renew its lease in time']);
  expect(warnings).toEqual([]);
});

test('the time of the lease counts anew from each renewal, and ends with the work', async () => {
  const { terms, work, said } = start();
  const coordination = { ...terms.coordination, acquire: () => Promise.resolve(true) };
  const held = await whileHolding({ ...terms, coordination, ttlMs: 1_600 }, work, async (until) => {
    await pause(1_700, until);
    return until.aborted;
  });
  await pause(1_200, work.signal);
  expect([held, said]).toEqual([{ result: false }, []]);
});

test('a release that fails is logged, and hides neither the result nor the error of the work', async () => {
  const { terms, work, said } = start();
  const failing = { ...terms, coordination: { ...terms.coordination, release: unavailable } };
  expect(await whileHolding(failing, work, async () => 'done')).toEqual({ result: 'done' });
  await expect(whileHolding(failing, work, () => Promise.reject(new Error('burnt')))).rejects.toThrow(
    'burnt',
  );
  const line = 'projector could not release its lease: it expires within seconds';
  expect(said).toEqual([line, line]);
});

test('the signal ends the work', async () => {
  const { stopping, terms, work } = start();
  const working = whileHolding(terms, work, (until) => pause(60_000, until));
  stopping.abort();
  await working;
});

test('it is released after the renewal that is under way, and no further one starts', async () => {
  const { terms, work } = start();
  const begun = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<boolean>();
  const calls: string[] = [];
  const acquire = (): Promise<boolean> => {
    calls.push('acquire');
    if (calls.length === 1) return Promise.resolve(true);
    begun.resolve();
    return answer.promise;
  };
  const release = async (): Promise<void> => void calls.push('release');
  const holding = whileHolding({ ...terms, coordination: { acquire, release } }, work, () => begun.promise);
  await begun.promise;
  await nextTurn();
  expect(calls).toEqual(['acquire', 'acquire']);
  answer.resolve(true);
  await holding;
  await pause(1_100, new AbortController().signal);
  expect(calls).toEqual(['acquire', 'acquire', 'release']);
});
