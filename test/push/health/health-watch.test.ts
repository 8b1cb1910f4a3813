import { describe, expect, test } from 'vitest';
import type { HealthVerdict } from '../../../src/push/health/health-events.ts';
import { HealthWatch } from '../../../src/push/health/health-watch.ts';
import type { WebhookHealth } from '../../../src/push/queue/delivery.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { unavailable } from '../../support/deliveries/push-machine.ts';
import { memoryLog } from '../../support/service/api.ts';

const NOW_MS = Date.UTC(2026, 8, 3);
const LANE = { prefix: 'aaaaaaaaaa', accountId: 7, endedAt: undefined };
const OTHER = { prefix: 'bbbbbbbbbb', accountId: 8, endedAt: 4 };

/** A watch whose events are kept here; an append waits where `waiting` is set, and fails where `failing` is. */
function watching() {
  const appended: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const underWay: Promise<void>[] = [];
  const store = { failing: false, onlyByClock: false, waiting: undefined as Promise<void> | undefined };
  const watch = new HealthWatch({
    async append({ prefix, judgement }: HealthVerdict) {
      await store.waiting;
      if (store.failing) throw unavailable();
      if (store.onlyByClock) return false;
      appended.push(`${judgement.kind} ${prefix}`);
      return true;
    },
    log: memoryLog(lines),
  });
  const fail = async (
    failedInARow: number,
    lane: Parameters<HealthWatch['failed']>[0] = LANE,
  ): Promise<void> => {
    const health: WebhookHealth = { failedInARow, failingSinceMs: NOW_MS, lastAnswers: ['503'] };
    underWay.push(watch.failed(lane, health, NOW_MS));
    if (store.waiting === undefined) await settle();
  };
  const ended = () => Promise.all(underWay);
  const isOff = (endedAt?: number) => watch.isSwitchingOff({ prefix: LANE.prefix, endedAt });
  return { watch, store, appended, isOff, lines, fail, ended };
}

describe('a warning', () => {
  test('is recorded once in a streak, of each webhook', async () => {
    const { appended, lines, fail, watch } = watching();
    await fail(24);
    expect(appended).toEqual([]);
    for (const failed of [25, 26, 27]) await fail(failed);
    await fail(25, OTHER);
    expect(lines).toMatchObject([
      {
        level: 40,
        prefix: LANE.prefix,
        failed_in_a_row: 25,
        failing_since_ms: NOW_MS,
        msg: 'webhook keeps failing',
      },
      { prefix: OTHER.prefix },
    ]);
    expect(appended).toEqual(['warn aaaaaaaaaa', 'warn bbbbbbbbbb']);
    watch.recovered(LANE.prefix);
    await fail(25);
    await fail(26, OTHER);
    expect(appended).toEqual(['warn aaaaaaaaaa', 'warn bbbbbbbbbb', 'warn aaaaaaaaaa']);
  });

  test('that cannot be recorded, nor what came meanwhile, waits for the next failure', async () => {
    const { ended, store, appended, lines, fail } = watching();
    const { promise, resolve } = Promise.withResolvers<void>();
    Object.assign(store, { failing: true, waiting: promise });
    await fail(25);
    await fail(26);
    store.waiting = undefined;
    resolve();
    await settle();
    await ended();
    expect([appended, lines.length]).toEqual([[], 2]);
  });

  test('that could not be recorded is tried again at the next failure', async () => {
    const { appended, isOff, store, fail, lines } = watching();
    store.failing = true;
    await fail(25);
    expect(isOff()).toBe(false);
    expect(lines).toMatchObject([
      { level: 50, prefix: LANE.prefix, msg: 'could not record that the webhook fails' },
    ]);
    store.failing = false;
    await fail(26);
    await fail(27);
    expect(appended).toEqual(['warn aaaaaaaaaa']);
  });

  test('that is being recorded is not recorded a second time beside it', async () => {
    const { appended, store, fail, ended } = watching();
    const mayAppend = Promise.withResolvers<void>();
    store.waiting = mayAppend.promise;
    for (const failed of [25, 26, 27]) await fail(failed);
    mayAppend.resolve();
    await ended();
    expect(appended).toEqual(['warn aaaaaaaaaa']);
  });
});

describe('a switch-off', () => {
  test('is known from before it is recorded until its event is seen', async () => {
    const { appended, isOff, store, lines, fail } = watching();
    const mayAppend = Promise.withResolvers<void>();
    store.waiting = mayAppend.promise;
    await fail(50);
    expect(isOff()).toBe(true);
    mayAppend.resolve();
    await settle();
    expect(appended).toEqual(['switch off aaaaaaaaaa']);
    expect(isOff()).toBe(true);
    expect(lines).toMatchObject([{ level: 40, failed_in_a_row: 50, msg: 'webhook switched off' }]);
    expect(isOff(9)).toBe(false);
  });

  test('whose event is seen before it is reported is not waited for again', async () => {
    const { isOff, store, fail } = watching();
    const mayAppend = Promise.withResolvers<void>();
    store.waiting = mayAppend.promise;
    await fail(50);
    expect(isOff(9)).toBe(false);
    mayAppend.resolve();
    await settle();
    expect(isOff(9)).toBe(false);
  });

  test('that only a clock makes due frees the lane, and is judged again at the next failure', async () => {
    const { appended, isOff, store, lines, fail } = watching();
    store.onlyByClock = true;
    await fail(50);
    expect(isOff()).toBe(false);
    expect(lines).toEqual([]);
    store.onlyByClock = false;
    await fail(51);
    expect(appended).toEqual(['switch off aaaaaaaaaa']);
  });

  test('is recorded once, also when further failures come while it is being recorded', async () => {
    const { appended, isOff, store, fail, ended } = watching();
    const mayAppend = Promise.withResolvers<void>();
    store.waiting = mayAppend.promise;
    for (const failed of [50, 51, 52]) await fail(failed);
    mayAppend.resolve();
    await ended();
    expect(appended).toEqual(['switch off aaaaaaaaaa']);
    expect(isOff()).toBe(true);
  });

  test('is no warning: a webhook that is enabled again and keeps failing is warned of', async () => {
    const { appended, fail } = watching();
    await fail(50);
    await fail(25);
    expect(appended).toEqual(['switch off aaaaaaaaaa', 'warn aaaaaaaaaa']);
  });

  test('that could not be recorded stops nothing, and is retried at the next failure', async () => {
    const { appended, isOff, store, lines, fail } = watching();
    store.failing = true;
    await fail(50);
    expect(lines).toMatchObject([{ level: 50, msg: 'could not record that the webhook is off' }]);
    expect(isOff()).toBe(false);
    store.failing = false;
    await fail(51);
    expect(appended).toEqual(['switch off aaaaaaaaaa']);
    expect(isOff()).toBe(true);
  });

  describe('that is called for while the warning is being recorded', () => {
    async function atThe(failedInARow: number) {
      const machine = watching();
      const mayAppend = Promise.withResolvers<void>();
      machine.store.waiting = mayAppend.promise;
      for (let failed = 25; failed <= failedInARow; failed++) await machine.fail(failed);
      expect(machine.isOff()).toBe(false);
      return { ...machine, mayAppend };
    }

    test('follows it at once, with the last failure as its evidence', async () => {
      const { appended, isOff, lines, ended, mayAppend } = await atThe(60);
      mayAppend.resolve();
      await ended();
      expect(appended).toEqual(['warn aaaaaaaaaa', 'switch off aaaaaaaaaa']);
      expect(isOff()).toBe(true);
      expect(lines.map((line) => line.failed_in_a_row)).toEqual([25, 60]);
    });

    test('does not follow where a delivery has succeeded meanwhile', async () => {
      const { appended, watch, mayAppend, ended } = await atThe(60);
      watch.recovered(LANE.prefix);
      mayAppend.resolve();
      await ended();
      expect(appended).toEqual(['warn aaaaaaaaaa']);
    });
  });
});
