import { describe, expect, test } from 'vitest';
import { checkClocks } from '../../../src/operator/checks/servers.ts';
import { said } from '../../support/checks/facts.ts';

const NOW_MS = Date.parse('2026-09-01T12:00:00Z');
const check = (remote: readonly ReturnType<typeof engine>[], trustedAtMs?: number) =>
  said(
    checkClocks({
      clock: { now: () => NOW_MS },
      engines: { remote },
      trustedAtMs: async () => trustedAtMs,
      process: undefined,
    }),
  );

const engine = (ms: number, clockStepMs = 0, name?: string) => ({
  title: 'another',
  clockStepMs,
  describe: async () => ({ version: '1', clockMs: NOW_MS + ms, ...(name !== undefined && { name }) }),
});

describe('the clocks', () => {
  test.each([
    [2_000, 0, true],
    [-2_000, 0, true],
    [2_001, 0, false],
    [-2_600, 0, false],
    [-4_000, 2_000, true], // it is known only to its step
    [-4_001, 2_000, false],
    [2_001, 2_000, false],
  ])('may differ by two seconds: %i ms of one that steps by %i ms is right: %s', async (ms, stepMs, ok) => {
    expect(await check([engine(ms, stepMs)])).toMatchObject({ ok });
  });

  test('that differ are named, with how much they differ and what to do', async () => {
    expect(await check([engine(-2_600)])).toMatchObject({
      detail: expect.stringContaining('another -2.6 s'),
      do: expect.stringContaining('chrony'),
    });
  });

  test('are named after the server that was found, and unknown if it does not answer', async () => {
    const away = { ...engine(0), title: 'MongoDB', describe: () => Promise.reject(new Error('away')) };
    expect(await check([engine(0, 0, 'KurrentDB'), away])).toMatchObject({
      ok: true,
      detail: expect.stringContaining('KurrentDB 0.0 s, MongoDB unknown'),
    });
  });

  test('are only that of this machine if everything is embedded', async () => {
    const detail = 'the embedded stores use the clock of this machine';
    expect(await check([])).toMatchObject({ ok: true, detail });
  });
});
