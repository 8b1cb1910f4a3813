import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Coordination, LiveProcess } from '../../src/base/coordination/coordination.ts';

const HOUR_MS = 3_600_000;

export interface CoordinationUnderTest {
  readonly coordination: Coordination;
  /** Opens the same store, as another process does. */
  readonly second: () => Coordination;
  /** Lets time pass by the store's clock, or sets it back if `ms` is negative. */
  readonly pass: (ms: number) => Promise<void>;
  /** The time of that clock, within a second. */
  readonly nowMs: () => number;
}

/** The contract of coordination. `open` returns an empty store, which the suite closes. */
export function coordinationContract(open: () => Promise<CoordinationUnderTest>): void {
  async function opened() {
    const { coordination, second, ...rest } = await open();
    onTestFinished(() => coordination.close());
    const other = second();
    onTestFinished(() => other.close());
    return { coordination, other, ...rest };
  }

  describe('a lease', () => {
    test('that is free is granted, and to no other holder while it lasts', async () => {
      const { coordination, other } = await opened();
      expect(await coordination.acquire('projector', 'a', 10_000)).toBe(true);
      expect(await other.acquire('projector', 'b', 10_000)).toBe(false);
      expect(await other.acquire('another', 'b', 10_000)).toBe(true);
    });

    test('that many ask for at once, for the first time or when it has ended, is granted to one of them', async () => {
      const { coordination, other, pass } = await opened();
      for (let round = 0; round < 3; round++) {
        const asked = Array.from({ length: 12 }, (_, n) =>
          (n % 2 === 0 ? coordination : other).acquire('projector', `${round}-${n}`, 10_000),
        );
        expect((await Promise.all(asked)).filter(Boolean)).toHaveLength(1);
        await pass(10_000);
      }
    });

    test('ends after its time unless its holder renews it', async () => {
      const { coordination, other, pass } = await opened();
      await coordination.acquire('projector', 'a', 10_000);
      await pass(8_000);
      expect(await coordination.acquire('projector', 'a', 10_000)).toBe(true);
      await pass(8_000);
      expect(await other.acquire('projector', 'b', 10_000)).toBe(false);
      await pass(2_000);
      expect(await other.acquire('projector', 'b', 10_000)).toBe(true);
      expect(await coordination.acquire('projector', 'a', 10_000)).toBe(false);
    });

    test('that is released is free at once; only its holder releases it', async () => {
      const { coordination, other } = await opened();
      await coordination.acquire('projector', 'a', 10_000);
      await other.release('projector', 'b');
      expect(await other.acquire('projector', 'b', 10_000)).toBe(false);
      await coordination.release('projector', 'a');
      expect(await other.acquire('projector', 'b', 10_000)).toBe(true);
    });

    test('has a holder and an end, whatever the holder’s name, and none once it has ended', async () => {
      const { coordination, other, pass, nowMs } = await opened();
      expect(await coordination.holder('projector')).toBeUndefined();
      await coordination.acquire('projector', '$holder', 10_000);
      const lease = await other.holder('projector');
      expect(lease?.holder).toBe('$holder');
      expect(Math.abs((lease?.expiresAtMs ?? 0) - nowMs() - 10_000)).toBeLessThan(2_000);
      await pass(10_000);
      expect(await other.holder('projector')).toBeUndefined();
    });

    test.each([
      ['an hour', HOUR_MS],
      ['five minutes', 300_000],
      ['half a minute', 30_000],
    ])('that was granted while the clock was %s ahead is over', async (_, aheadMs) => {
      const { coordination, other, pass } = await opened();
      await coordination.acquire('projector', 'dead', 3_000);
      await pass(-aheadMs);
      expect(await other.holder('projector')).toBeUndefined();
      expect(await other.acquire('projector', 'b', 3_000)).toBe(true);
      expect(await other.holder('projector')).toMatchObject({ holder: 'b' });
      expect(await coordination.acquire('projector', 'dead', 3_000)).toBe(false);
    });

    test('of a process that has ended on this machine is over, and no other', async () => {
      const { coordination, other, pass } = await opened();
      const here = { host: hostname(), roles: [], startedAtMs: 0, seenAtMs: 0, isReady: false };
      const places = {
        gone: { ...here, pid: spawnSync('true').pid },
        lives: { ...here, pid: process.pid },
        elsewhere: { ...here, pid: spawnSync('true').pid, host: 'elsewhere' },
      };
      for (const [id, place] of Object.entries(places)) {
        await coordination.report({ id, ...place });
        await coordination.acquire(id, id, HOUR_MS);
        // A process that still reports is in another container.
        expect(await other.acquire(id, 'b', HOUR_MS)).toBe(false);
      }
      await pass(6_000);
      const holders = Object.keys(places).map(async (id) => (await other.holder(id))?.holder);
      expect(await Promise.all(holders)).toEqual([undefined, 'lives', 'elsewhere']);
      const granted = Object.keys(places).map((id) => other.acquire(id, 'b', HOUR_MS));
      expect(await Promise.all(granted)).toEqual([true, false, false]);
    });

    test('without an end lasts until it is released, whatever becomes of the clock', async () => {
      const { coordination, other, pass } = await opened();
      await coordination.acquire('store copy', 'a', Number.POSITIVE_INFINITY);
      for (const ms of [-HOUR_MS, 1_000 * HOUR_MS]) {
        await pass(ms);
        expect(await other.acquire('store copy', 'b', 10_000)).toBe(false);
        expect(await other.holder('store copy')).toMatchObject({ holder: 'a' });
      }
      await coordination.release('store copy', 'a');
      expect(await other.acquire('store copy', 'b', 10_000)).toBe(true);
    });
  });

  describe('the checkpoint of a follower', () => {
    const anchor = { position: 2 ** 40, stream: 'account-7', revision: 3, recordedAtMs: 5_000 };
    const at = (position: number) => ({ storeId: '$store', position, anchor });

    test('is none before it was moved, and then that of the last move, in each process', async () => {
      const { coordination, other } = await opened();
      expect(await coordination.checkpoint('notices')).toBeUndefined();
      await coordination.moveCheckpoint('notices', at(2 ** 41));
      await coordination.moveCheckpoint('another', { ...at(1), anchor: undefined });
      expect(await other.checkpoint('notices')).toEqual(at(2 ** 41));
      expect(await other.checkpoint('another')).toEqual({ ...at(1), anchor: undefined });
      await other.moveCheckpoint('notices', { ...at(7), storeId: 'restored' }); // an older copy of the log
      expect(await coordination.checkpoint('notices')).toEqual({ ...at(7), storeId: 'restored' });
    });

    test('is one of those that several processes move it to at once', async () => {
      const { coordination, other } = await opened();
      const places = Array.from({ length: 12 }, (_, n) => at(n + 1));
      const moves = places.map((place, n) =>
        (n % 2 === 0 ? coordination : other).moveCheckpoint('notices', place),
      );
      await Promise.all(moves);
      expect(places).toContainEqual(await other.checkpoint('notices'));
    });
  });

  describe('live processes', () => {
    const reported = (id: string, overrides: Partial<LiveProcess> = {}): LiveProcess => ({
      id,
      pid: 1,
      host: 'elsewhere',
      roles: ['api', 'webhooks'],
      startedAtMs: 1_000,
      seenAtMs: 0,
      isReady: false,
      ...overrides,
    });

    test('are listed as they last reported, the oldest first, until they leave', async () => {
      const { coordination, other, nowMs } = await opened();
      const seenAtMs = nowMs();
      await coordination.report(reported('b', { seenAtMs, startedAtMs: 2_000 }));
      await coordination.report(reported('a', { seenAtMs }));
      await coordination.report(reported('b', { seenAtMs, startedAtMs: 2_000, isReady: true }));
      const seen = { seenAtMs: expect.any(Number) };
      expect(await other.live(5_000)).toEqual([
        reported('a', seen),
        reported('b', { ...seen, startedAtMs: 2_000, isReady: true }),
      ]);
      await coordination.report(reported('z', { seenAtMs, startedAtMs: 500 }));
      expect((await other.live(5_000)).map(({ id }) => id)).toEqual(['z', 'a', 'b']);
      await coordination.removeProcess('a');
      expect((await other.live(5_000)).map(({ id }) => id)).toEqual(['z', 'b']);
    });

    test('are those that reported lately', async () => {
      const { coordination, pass, nowMs } = await opened();
      await coordination.report(reported('a', { seenAtMs: nowMs() }));
      await pass(4_000);
      await coordination.report(reported('b', { seenAtMs: nowMs() }));
      await pass(2_000);
      expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['b']);
      await pass(3_000);
      expect(await coordination.live(5_000)).toEqual([]);
    });

    test('are not those that reported while the clock was ahead', async () => {
      const { coordination, pass } = await opened();
      await coordination.report(reported('a'));
      await pass(-1_000);
      expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['a']);
      await pass(-HOUR_MS);
      expect(await coordination.live(5_000)).toEqual([]);
    });

    test('are not those of this machine that were killed', async () => {
      const { coordination, nowMs } = await opened();
      const { pid } = spawnSync('true');
      const here = { host: hostname(), seenAtMs: nowMs() };
      await coordination.report(reported('gone', { ...here, pid }));
      await coordination.report(reported('this', { ...here, pid: process.pid }));
      expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['this']);
    });
  });
}
