import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import type { Sender } from '../../../src/push/sender/sender.ts';
import type { SendResult } from '../../../src/push/sender/timed-send.ts';
import { deliveryMetrics } from '../../../src/service/ops/delivery-metrics.ts';

function counted() {
  const registry = new Registry();
  const metrics = deliveryMetrics(registry);
  const values = async (name: string) =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return { metrics, values };
}

test('a request that cannot be signed counts as a failed attempt without a time', async () => {
  const { metrics, values } = counted();
  expect(metrics.signed(() => 'request')).toBe('request');
  const unsigned = () => {
    throw new RangeError('no master key');
  };
  expect(() => metrics.signed(unsigned)).toThrow('no master key');
  expect(await values('fuel_delivery_attempts_total')).toEqual([
    'fuel_delivery_attempts_total{outcome="delivered",kind=""} 0',
    'fuel_delivery_attempts_total{outcome="failed",kind="secret"} 1',
    'fuel_delivery_attempts_total{outcome="failed",kind="fault"} 0',
  ]);
  expect(await values('fuel_delivery_attempt_duration_seconds_count')).toEqual([
    'fuel_delivery_attempt_duration_seconds_count 0',
  ]);
});

test('an attempt is under way until it has ended, also where the sender fails', async () => {
  const { metrics, values } = counted();
  const result = Promise.withResolvers<SendResult>();
  let closed = 0;
  const sender: Sender = {
    send: () => result.promise,
    openConnections: () => 3,
    proxyWaitMs: () => 0,
    close: async () => {
      closed += 1;
    },
  };
  const over = metrics.over(sender);
  expect(over.openConnections('https://a.example')).toBe(3);
  const sending = over.send({} as never);
  expect(await values('fuel_deliveries_in_flight')).toEqual(['fuel_deliveries_in_flight 1']);
  result.reject(new Error('a fault'));
  await expect(sending).rejects.toThrow('a fault');
  expect(await values('fuel_deliveries_in_flight')).toEqual(['fuel_deliveries_in_flight 0']);
  await over.close();
  expect(closed).toBe(1);
});

test('the webhooks that wait for their receivers are as many as were last said', async () => {
  const { metrics, values } = counted();
  expect(await values('fuel_deliveries_waiting_lanes')).toEqual(['fuel_deliveries_waiting_lanes 0']);
  for (const count of [3, 2]) metrics.waitingLanes(count);
  expect(await values('fuel_deliveries_waiting_lanes')).toEqual(['fuel_deliveries_waiting_lanes 2']);
});

test('a redelivery is counted with its first attempt', async () => {
  const { metrics, values } = counted();
  for (const [cycle, attemptNumber] of [
    [1, 1],
    [2, 1],
    [2, 2],
  ] as const)
    metrics.attempting({ cycle, attemptNumber });
  expect(await values('fuel_redeliveries_total')).toEqual(['fuel_redeliveries_total 1']);
});
