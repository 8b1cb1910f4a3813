import { expect, test } from 'vitest';
import { registry } from '../../../src/engines/engines.ts';
import { checkConfiguration } from '../../../src/operator/checks/configuration.ts';
import { said } from '../../support/checks/facts.ts';

const check = (env: Readonly<Record<string, string>>) =>
  said(checkConfiguration({ env, config: registry.inspectConfig(env).config, registry }));

test('every fault is named, and so is a name that resembles a setting', async () => {
  expect(await check({ FUEL_OWN: '1' })).toMatchObject({ ok: true });
  const misspelt = { FUEL_LISTN: '0.0.0.0:1' };
  expect(await check({ FUEL_TLS: 'no', FUEL_EDGE: 'no', ...misspelt })).toEqual({
    ok: false,
    detail: expect.stringMatching(
      /FUEL_TLS: .*FUEL_EDGE: .*; FUEL_LISTN is not a setting: did you mean FUEL_LISTEN\?$/,
    ),
    do: expect.stringContaining('fuel config show'),
  });
  expect(await check(misspelt)).toMatchObject({ ok: false });
});
