import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { deliveryMetrics } from '../../../src/service/ops/delivery-metrics.ts';
import { SUCCESS } from '../../support/deliveries/deliveries.ts';
import { sentIn } from '../../support/deliveries/push.ts';

const FIRST = { cycle: 1, attemptNumber: 1 };

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
  metrics.unsigned();
  expect(await values('fuel_delivery_attempts_total')).toEqual([
    'fuel_delivery_attempts_total{outcome="delivered",kind=""} 0',
    'fuel_delivery_attempts_total{outcome="failed",kind="secret"} 1',
    'fuel_delivery_attempts_total{outcome="failed",kind="fault"} 0',
  ]);
  expect(await values('fuel_delivery_attempt_duration_seconds_count')).toEqual([
    'fuel_delivery_attempt_duration_seconds_count 0',
  ]);
});

test('an attempt is under way until it has ended, and counts if something was sent', async () => {
  const { metrics, values } = counted();
  metrics.attempting();
  metrics.attempting();
  expect(await values('fuel_deliveries_in_flight')).toEqual(['fuel_deliveries_in_flight 2']);
  metrics.attempted(FIRST, sentIn(20, SUCCESS), {});
  metrics.attempted(FIRST, { ...sentIn(20, SUCCESS), isWithheld: true }, {});
  expect(await values('fuel_deliveries_in_flight')).toEqual(['fuel_deliveries_in_flight 0']);
  expect(await values('fuel_delivery_attempt_duration_seconds_count')).toEqual([
    'fuel_delivery_attempt_duration_seconds_count 1',
  ]);
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
    metrics.attempted({ cycle, attemptNumber }, sentIn(20, SUCCESS), {});
  expect(await values('fuel_redeliveries_total')).toEqual(['fuel_redeliveries_total 1']);
});
