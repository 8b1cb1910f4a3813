import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { world } from '../../../src/base/world.ts';
import { opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { commandLine, sharedCommandLine } from '../../support/service/command-line.ts';
import { until } from '../../support/waiting.ts';

describe('the exit code of a command', () => {
  const { fuel } = sharedCommandLine((line) => line.hasServed());

  test('is 0 for what is done, and help and version are', async () => {
    for (const args of [
      ['account', 'open', '7', '--name', 'x'],
      ['--help'],
      ['key', '--help'],
      ['--version'],
    ]) {
      expect([args, (await fuel(...args)).code]).toEqual([args, 0]);
    }
  });

  test.each([
    ['what is refused', ['key', 'off', PREFIX]],
    ['a command on an account that is not open', ['account', 'integration', '9', 'on']],
    ['a delivery that is not there', ['delivery', 'show', 'x']],
    ['a transaction that is not known', ['transaction', 'show', '1']],
    ['a file that is not there', ['transaction', 'import', '/nowhere/file']],
  ])('is 1 for %s, with the reason on standard error', async (_, args) => {
    const { code, stdout, stderr } = await fuel(...args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^fuel: REFUSED: \S.*\n$/);
  });

  test.each([
    [[]],
    [['account']],
    [['nothing']],
    [['account', 'show']],
    [['account', 'show', 'x']],
    [['account', 'show', '7', '8']],
    [['account', 'list', '--actor', 'Ada']],
    [['key', 'rate-limit', 'zzzzzzzzzz', '0']],
    [['serve', '--role', 'cook']],
    [['mock', '--port', '65535']],
    [['mock', '--seed', 'x']],
    [['verify', 'everything']],
    [['verify', '--resend-unknown']],
    [['verify', 'deliveries', '--resend-unknown']],
    [['projection', 'rebuild', 'everything']],
    [['projection', 'parked', 'retry']],
    [['projection', 'parked', 'retry', '1', '--all']],
    [['delivery', 'redeliver']],
    [['delivery', 'list', '--limit', '0']],
    [['delivery', 'list', '--state', 'lost']],
  ])('is 2 for wrong usage, and nothing is printed as a result: %j', async (args) => {
    const { code, stdout, stderr } = await fuel(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/\w{3,}/);
    expect(stderr).not.toMatch(/unexpected|\n\s+at /);
  });

  test('is 1 where a setting is not valid, and names it', async () => {
    vi.stubEnv('FUEL_DELIVERY_RETENTION_DAYS', '0');
    const { code, stderr } = await fuel('account', 'list');
    expect([code, stderr]).toEqual([1, expect.stringContaining('FUEL_DELIVERY_RETENTION_DAYS')]);
  });
});

test('a refusal names its cause', async () => {
  const { fuel } = commandLine();
  const { stderr } = await fuel('transaction', 'import', '/nowhere/file');
  expect(stderr).toMatch(/^fuel: REFUSED: \/nowhere\/file can't be read \(ENOENT: .*\)\n$/);
});

test.each([
  ['REFUSED', {}, ['account', 'show', '7']],
  ['USAGE', {}, ['verify', 'everything']],
  ['USAGE', {}, ['transaction', 'erase', '1', '--reason', 'x']],
  ['CONFIG_INVALID', { FUEL_LISTEN: 'here' }, ['account', 'list']],
])('a message begins with the code that docs/errors.md lists: %s', async (code, env, args) => {
  const { fuel } = commandLine(env, { hasStore: false });
  expect((await fuel(...args)).stderr).toMatch(new RegExp(`^fuel: ${code}: \\S`));
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
    expect.stringMatching(/^fuel: ENOTDIR: [^\n]+: check the disk, .*\n$/m),
  ]);
});

describe('--wait', () => {
  test('says that nothing waits where no service runs', async () => {
    const { fuel, account } = commandLine();
    await account(opened());
    const { code, stderr } = await fuel('account', 'integration', '7', 'on', '--wait');
    expect([code, stderr]).toEqual([0, 'no service is running: nothing to wait for\n']);
    expect((await fuel('account', 'integration', '7', 'off')).stderr).toBe('');
  });

  test('waits until every live process has applied what the command recorded', async () => {
    const { fuel, account, withEngines } = commandLine();
    await account(opened());
    const head = () => withEngines((engines) => engines.store().head());
    const report = (directoryPosition: number) =>
      withEngines((engines) =>
        engines.coordination().report({
          ...{ id: 'p', host: 'here', pid: 1, roles: ['api'], startedAtMs: 0, seenAtMs: Date.now() },
          directoryPosition,
        }),
      );
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
    expect(await waiting).toMatchObject({ applied: true, result: { code: 0, stdout: 'done\n', stderr: '' } });
  });
});
