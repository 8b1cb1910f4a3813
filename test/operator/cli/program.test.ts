import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { PROGRESS } from '../../../src/accounts/rows/tables.ts';
import { world } from '../../../src/base/world.ts';
import { put } from '../../../src/tables/tables.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { until } from '../../support/waiting.ts';

test.each([
  ['REFUSED', {}, ['account', 'show', '7'], 1],
  ['USAGE', {}, ['verify', 'everything'], 2],
  ['USAGE', {}, ['transaction', 'erase', '1', '--reason', 'x'], 2],
  ['CONFIG_INVALID', { FUEL_LISTEN: 'here' }, ['account', 'list'], 1],
])('an error has the code that docs/errors.md lists: %s', async (code, env, args, exitCode) => {
  const { fuel } = commandLine(env, { hasStore: false });
  const text = await fuel(...args);
  expect([text.code, text.stderr]).toEqual([exitCode, expect.stringMatching(/^fuel: [^{]/)]);
  const json = await fuel(...args, '--json');
  const message = text.stderr.slice('fuel: '.length, -1);
  expect([json.code, JSON.parse(json.stderr)]).toEqual([exitCode, { code, message }]);
});

test('a fault of the program is reported with its stack', async () => {
  const { fuel } = commandLine();
  vi.spyOn(world, 'randomUUID').mockImplementation(() => {
    throw new Error('a fault');
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const { code, stderr } = await fuel('account', 'open', '7', '--name', 'Seven');
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^fuel: unexpected: Error: [^\n]+\n\s+at /m)]);
});

test('what the operating system refuses is no fault of the program', async () => {
  const { fuel } = commandLine({ FUEL_DATA_DIR: '/dev/null/data' }, { hasStore: false });
  const { code, stderr } = await fuel('account', 'open', '7', '--name', 'Seven');
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^fuel: ENOTDIR: [^\n]+\. Check the disk .*\n$/m),
  ]);
});

describe('--wait', () => {
  test('says that nothing waits where no service runs', async () => {
    const { fuel, account } = commandLine();
    await account(opened());
    const { code, stderr } = await fuel('account', 'integration', '7', 'on', '--wait');
    expect([code, stderr]).toEqual([0, 'No service is running, so there is nothing to wait for\n']);
    expect((await fuel('account', 'integration', '7', 'off')).stderr).toBe('');
  });

  test('waits until the rows of accounts have what the command recorded', async () => {
    const { fuel, account, withEngines } = commandLine();
    await account(opened());
    const head = () => withEngines((engines) => engines.store().head());
    const report = (position: number) =>
      withEngines(async (engines) => {
        const rows = {
          name: 'accounts',
          store_id: 's',
          position,
          reached: position,
          anchor: null,
          complete_at: 0,
        };
        await engines.accounts().write([put(PROGRESS, rows)]);
        await engines.coordination().report({
          id: 'p',
          host: 'here',
          pid: 1,
          roles: ['api'],
          startedAtMs: 0,
          seenAtMs: Date.now(),
          isReady: true,
        });
      });
    const before = await head();
    await report(before);
    let applied = false;
    const waiting = fuel('account', 'integration', '7', 'on', '--wait').then((result) => ({
      result,
      applied,
    }));
    await until(async () => (await head()) > before);
    for (let count = 0; count < 10; count++) await report(before); // time enough to end, if it did not wait
    applied = true;
    await report(await head());
    expect(await waiting).toMatchObject({
      applied: true,
      result: { code: 0, stdout: expect.stringMatching(/^Switched on/), stderr: '' },
    });
  });
});
