import { EventEmitter } from 'node:events';
import type { AllStreamSubscription } from '@eventstore/db-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ServerSubscription } from '../../../src/engines/eventstoredb/driver/server-subscription.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Opens a subscription for which the test plays the server. */
function opened() {
  const driver = Object.assign(new EventEmitter(), { unsubscribe: async () => undefined });
  let notified = 0;
  const changed = { notify: () => void notified++ };
  const subscription = new ServerSubscription(driver as unknown as AllStreamSubscription, changed);
  return { driver, subscription, notified: () => notified };
}

test('a subscription that the server does not confirm within five seconds has ended', async () => {
  const { subscription, notified } = opened();
  await vi.advanceTimersByTimeAsync(4_999);
  expect([subscription.error, notified()]).toEqual([undefined, 0]);
  await vi.advanceTimersByTimeAsync(1);
  expect(subscription.error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect([subscription.isConfirmed, notified()]).toEqual([false, 1]);
});

test('one that is confirmed goes on until it breaks, with the first error', async () => {
  const { driver, subscription, notified } = opened();
  driver.emit('confirmation');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([subscription.isConfirmed, subscription.error, notified()]).toEqual([true, undefined, 1]);
  driver.emit('error', new Error('broken'));
  driver.emit('end');
  expect(subscription.error?.message).toBe('broken');
});

test('one that is closed leaves no timer, whether or not it was confirmed', () => {
  const { subscription } = opened();
  subscription.close();
  expect(vi.getTimerCount()).toBe(0);
});
