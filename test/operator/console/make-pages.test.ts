import { expect, onTestFinished, test, vi } from 'vitest';
import type { ConsoleParts } from '../../../src/operator/console/figures/console-parts.ts';
import { AttemptHistory } from '../../../src/operator/console/figures/history.ts';
import { makePages } from '../../../src/operator/console/make-pages.ts';

const NOT_READY = { ready: false, checks: { started: false } };

/** Makes pages of a service that has not started. Each page asks it for its readiness. */
function maker(readiness: () => Promise<typeof NOT_READY> = async () => NOT_READY) {
  const clock = { now: Date.now };
  const asked = vi.fn(readiness);
  const make = makePages({ environment: 'staging', clock, readiness: asked, parts: () => undefined });
  return { asked, clock, page: (path: string, query = '') => make(path, query) };
}

test('the order of parameters does not make another page', async () => {
  const { page, asked } = maker();
  const [one, other] = [page('/find', 'q=x&after=y'), page('/find', 'after=y&q=x')];
  expect(other).toBe(one);
  await one;
  expect(asked).toHaveBeenCalledTimes(1);
  expect(page('/find', 'q=x')).not.toBe(one);
});

test('a page that failed by a fault of the program is made again for the next request', async () => {
  const { page, clock } = maker();
  clock.now = () => {
    throw new TypeError('a fault');
  };
  await expect(page('/')).rejects.toThrow('a fault');
  clock.now = Date.now;
  expect((await page('/')).outcome).toBe('unavailable');
});

test('no page takes longer than 6 s', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { page } = maker(() => new Promise(() => undefined));
  const slow = page('/find', 'q=1');
  await vi.advanceTimersByTimeAsync(6_000);
  expect((await slow).body).toContain('does not answer');
});

test('all pages share what was read', async () => {
  let reads = 0;
  const parts = {
    engines: { remote: [], embedded: [] },
    config: {},
    clock: { now: Date.now },
    attempts: new AttemptHistory(),
    readings: [],
    roles: [],
    readiness: async () => {
      reads++;
      return NOT_READY;
    },
  };
  const make = makePages({
    environment: 'staging',
    clock: { now: Date.now },
    readiness: async () => NOT_READY,
    parts: () => parts as unknown as ConsoleParts,
  });
  await Promise.allSettled([make('/', ''), make('/projections', '')]);
  expect(reads).toBe(1);
});
