import { expect, test } from 'vitest';
import { checkConfiguration } from '../../../../src/operator/checks/checks/configuration.ts';

test('every fault is named, and a name that resembles a setting', () => {
  expect(checkConfiguration({ faults: [], unknown: [{ name: 'FUEL_OWN', resembles: null }] })).toMatchObject({
    ok: true,
  });
  const unknown = [{ name: 'FUEL_LISTN', resembles: 'FUEL_LISTEN' }];
  expect(checkConfiguration({ faults: ['FUEL_TLS: no', 'FUEL_EDGE: no'], unknown })).toEqual({
    ok: false,
    detail: 'FUEL_TLS: no; FUEL_EDGE: no; FUEL_LISTN is no setting: did you mean FUEL_LISTEN?',
    do: expect.stringContaining('fuel config show'),
  });
  expect(checkConfiguration({ faults: [], unknown })).toMatchObject({ ok: false });
});
