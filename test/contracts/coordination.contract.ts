import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Coordination, LiveProcess } from '../../src/base/coordination/coordination.ts';

export interface CoordinationUnderTest {
  readonly coordination: Coordination;
  /** As another process opens it. */
  readonly second: () => Coordination;
  /** Lets time pass by the store's clock. */
  readonly pass: (ms: number) => Promise<void>;
  /** The time of that clock, within a second. */
  readonly nowMs: () => number;
}

/** What processes on the same stores rely on. `open` gives an empty one; the suite closes it. */
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
  });

  describe('live processes', () => {
    const reported = (id: string, overrides: Partial<LiveProcess> = {}): LiveProcess => ({
      id,
      pid: 1,
      host: 'elsewhere',
      roles: ['api', 'webhooks'],
      startedAtMs: 1_000,
      seenAtMs: 0,
      directoryPosition: null,
      ...overrides,
    });

    test('are listed as they last reported, the oldest first, until they leave', async () => {
      const { coordination, other, nowMs } = await opened();
      const seenAtMs = nowMs();
      await coordination.report(reported('b', { seenAtMs, startedAtMs: 2_000 }));
      await coordination.report(reported('a', { seenAtMs }));
      await coordination.report(reported('b', { seenAtMs, startedAtMs: 2_000, directoryPosition: 77 }));
      const seen = { seenAtMs: expect.any(Number) };
      expect(await other.live(5_000)).toEqual([
        reported('a', seen),
        reported('b', { ...seen, startedAtMs: 2_000, directoryPosition: 77 }),
      ]);
      await coordination.report(reported('z', { seenAtMs, startedAtMs: 500 }));
      expect((await other.live(5_000)).map(({ id }) => id)).toEqual(['z', 'a', 'b']);
      await coordination.leave('a');
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

    test('are not those of this machine that were killed', async () => {
      const { coordination, nowMs } = await opened();
      const { pid } = spawnSync('true');
      const here = { host: hostname(), seenAtMs: nowMs() };
      await coordination.report(reported('gone', { ...here, pid }));
      await coordination.report(reported('this', { ...here, pid: process.pid }));
      expect((await coordination.live(5_000)).map(({ id }) => id)).toEqual(['this']);
    });

    test('can be changed by the caller without changing what is stored', async () => {
      const { coordination, nowMs } = await opened();
      await coordination.report(reported('a', { seenAtMs: nowMs() }));
      for (const { roles } of await coordination.live(5_000)) (roles as string[]).push('notices');
      expect((await coordination.live(5_000))[0]?.roles).toEqual(['api', 'webhooks']);
    });
  });

  test('after it is closed every call rejects with STORE_CLOSED', async () => {
    const { coordination, other } = await opened();
    await coordination.acquire('projector', 'a', 10_000);
    await coordination.close();
    const process: LiveProcess = {
      id: 'a',
      pid: 1,
      host: 'elsewhere',
      roles: [],
      startedAtMs: 0,
      seenAtMs: 0,
      directoryPosition: null,
    };
    const calls = [
      () => coordination.acquire('projector', 'a', 10_000),
      () => coordination.release('projector', 'a'),
      () => coordination.holder('projector'),
      () => coordination.report(process),
      () => coordination.leave('a'),
      () => coordination.live(5_000),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect(await other.holder('projector')).toMatchObject({ holder: 'a' });
  });
}
