import { expect, test } from 'vitest';
import { AttemptMeter } from '../../../src/service/roles/attempt-meter.ts';

test('a request that can not be signed counts as a failed attempt without a time', () => {
  const meter = new AttemptMeter();
  expect(meter.signed(() => 'request')).toBe('request');
  expect(meter.take().attempts).toEqual([]);
  const unsigned = () => {
    throw new RangeError('no master key');
  };
  expect(() => meter.signed(unsigned)).toThrow('no master key');
  const { attempts, durationsSeconds } = meter.take();
  expect(attempts).toEqual([{ outcome: 'failed', kind: 'secret', count: 1 }]);
  expect(durationsSeconds).toHaveLength(0);
});
