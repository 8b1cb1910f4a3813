import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { describe, expect, test, vi } from 'vitest';
import { keyIssued, opened } from '../../support/accounts/account-samples.ts';
import { commandLine, sharedCommandLine } from '../../support/service/command-line.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';

const LATE = ['--since', '2026-09-02T00:00:00Z', '--until', '2026-09-01T00:00:00Z'];

const { fuel, done, append, withEngines } = sharedCommandLine(async (cli) => {
  await cli.hasServed();
  await cli.account(opened(), keyIssued());
  await cli.append('account-8', [opened('Eight', 8)]);
  await cli.done('projection', 'rebuild', 'transactions');
});

test.each([
  ['account', 'contact', '7', '--email', ''],
  ['account', 'contact', '7', '--email', ' , '],
  ['account', 'contact', '7'],
  ['account', 'apply', ''],
  ['audit', '--type', ''],
  ['audit', '--key', ''],
  ['delivery', 'list', '--after', ' '],
  ['key', 'issue', '7', '--allow', ''],
  ['key', 'issue', '7', '--label', ''],
  ['key', 'issue', '7', '--webhook-url', ''],
  ['key', 'allow', 'abcdefghij', ''],
])('an empty value, as of an unset variable, is wrong usage: fuel %s %s %s %s', async (...args) => {
  const before = await withEngines((engines) => engines.store().head());
  expect(await fuel(...args)).toMatchObject({ code: 2, stdout: '' });
  expect(await withEngines((engines) => engines.store().head())).toBe(before);
});

test('contacts are removed by --no-email', async () => {
  const contacts = async (...args: readonly string[]) =>
    (await done('account', 'contact', '7', ...args)).contacts;
  expect([await contacts('--email', 'a@example.com'), await contacts('--no-email')]).toEqual([
    ['a@example.com'],
    [],
  ]);
});

describe('nothing is answered with silence', () => {
  test.each([
    ['audit --account 99', 'account 99 is not known'],
    ['audit --transaction 99', 'transaction 99 is not known'],
    ['audit --key zzzzzzzzzz', 'no key has the prefix zzzzzzzzzz'],
    ['audit --actor nobody', 'no event was recorded by nobody'],
    ['audit --actor nobody --newest --limit 3', 'no event was recorded by nobody'],
    ['transaction list --account 99', 'account 99 is not known'],
    ['transaction list --account 7 --corporate 3', 'account 7 has no corporate 3'],
    ['transaction list --account 7 --after 3', 'account 7 shows no transaction 3'],
    ['key list --account 99', 'account 99 is not known'],
    ['delivery list --account 99', 'account 99 is not known'],
    ['delivery list --transaction 99', 'transaction 99 is not known'],
    ['delivery list --key zzzzzzzzzz', 'no key has the prefix zzzzzzzzzz'],
    ['verify --account 99', 'account 99 is not known'],
    ['verify view --account 99', 'account 99 is not known'],
    ['verify deliveries --account 99', 'account 99 is not known'],
    ['audit --key abcdefghij --account 8', 'the key abcdefghij is of account 7, not of account 8'],
    ['audit --key abcdefghij --account 8 --follow', 'the key abcdefghij is of account 7, not of account 8'],
    ['delivery list --key abcdefghij --account 8', 'the key abcdefghij is of account 7, not of account 8'],
    ['webhook show zzzzzzzzzz', 'no key has the prefix zzzzzzzzzz'],
  ])('an unknown name is refused: fuel %s', async (line, message) => {
    const { code, stdout, stderr } = await fuel(...line.split(' '));
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
  });

  test.each([
    [['audit', '--type', 'KeyIssued,KeyLost'], /KeyLost is not an event type: they are TransactionConfirmed/],
    [['delivery', 'list', '--state', 'sent'], /'sent' is invalid/],
    [['delivery', 'list', '--follow', '--after', 'x'], /leave out --after/],
    [['audit', '--newest', '--follow'], /does not go with --follow/],
    [
      ['transaction', 'list', '--account', '7', '--status', 'VOID'],
      /Allowed choices are CONFIRMED, EXTERNAL/,
    ],
    [['account', 'integration', '7', 'on', '--reason', 'x'], /goes with off/],
    [['verify', 'view', '--explain'], /--explain says why deliveries/],
    [['verify', 'view', '--repair', '--resend-unknown'], /--resend-unknown rebuilds the delivery log/],
    [['audit', ...LATE], /--since 2026-09-02T00:00:00.000Z is after --until 2026-09-01T00:00:00.000Z/],
    [['delivery', 'list', ...LATE], /is after --until/],
    [['verify', ...LATE], /is after --until/],
    [['delivery', 'redeliver', '--failed', '--key', 'zzzzzzzzzz', ...LATE], /is after --until/],
    [['account', 'open', '8', '--name', 'a', '--name', 'b'], /'--name' was given twice/],
    [['audit', '--account', '7', '--account', '8'], /'--account' was given twice/],
    [['account', 'open', '8', '--name', 'a', '--actor', ' '], /must not be empty/],
    [['account', 'open', '8', '--name', 'a', '--actor', 'b'.repeat(1_001)], /longer than 1000 characters/],
    [['transaction', 'erase', '1', '--yes', '--reason', 'b'.repeat(1_001)], /longer than 1000 characters/],
  ])('a question without an answer is wrong usage: fuel %j', async (args, message) => {
    const { code, stdout, stderr } = await fuel(...args);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)]);
  });

  test('what is known and has nothing is answered with nothing', async () => {
    for (const line of [
      'audit --account 7 --type KeyAllowListSet',
      'key list --account 8',
      'delivery list --account 7',
    ]) {
      expect([line, await fuel(...line.split(' '))]).toMatchObject([
        line,
        { code: 0, stdout: '', stderr: '' },
      ]);
    }
  });

  test('an account that was never opened is known to all commands as long as transactions name it', async () => {
    await append('transaction-1', [confirmed(1, { account_id: 9 })]);
    await append('transaction-2', [confirmed(2, { account_id: 10 }), voided(2, { account_id: 10 })]);
    await done('projection', 'rebuild', 'transactions');
    for (const line of [
      'audit --account 9 --type KeyIssued',
      'audit --account 10',
      'delivery list --account 9',
      'transaction list --account 9 --to 2000-01-01T00:00:00Z',
      'transaction list --account 9 --corporate 31 --to 2000-01-01T00:00:00Z',
      'verify --account 9',
      'verify view --account 9',
      'verify deliveries --account 9',
      'verify deliveries --account 10',
    ]) {
      const { code, stderr } = await fuel(...line.split(' '));
      expect([line, code, stderr]).toEqual([line, 0, '']);
    }
    expect((await fuel('transaction', 'list', '--account', '9', '--corporate', '404')).code).toBe(1);
  });

  test('what is followed until a time ends with it', async () => {
    for (const noun of [['audit'], ['delivery', 'list']]) {
      const until = new Date(Date.now() + 700).toISOString();
      const { code, stderr } = await fuel(...noun, '--account', '7', '--follow', '--until', until);
      expect([noun, code, stderr, Date.now() > Date.parse(until)]).toEqual([noun, 0, '', true]);
    }
  });

  test('audit names who did it, as whom, and with what; newest first and only so many where asked', async () => {
    await done('account', 'integration', '7', 'on', '--actor', 'Grace');
    await done('account', 'integration', '7', 'off', '--actor', 'Grace', '--reason', 'unpaid');
    const { lines } = await fuel('audit', '--actor', 'Grace', '--newest', '--limit', '1', '--json');
    expect(lines).toMatchObject([
      {
        type: 'IntegrationDisabled',
        actor: 'Grace',
        os_user: process.env.SUDO_USER ?? userInfo().username,
        correlation_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        data: { account_id: 7, reason: 'unpaid' },
      },
    ]);
  });

  test.each([
    [{ FUEL_OPERATOR_LOGIN: 'grace', SUDO_USER: 'linus' }, 'grace'],
    [{ SUDO_USER: 'linus' }, 'linus'],
  ])('audit names who called, behind sudo and in a container too: %o', async (env, login) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    await done('account', 'contact', '8', '--email', `${login}@example.com`, '--actor', 'Ada');
    const { stdout } = await fuel('audit', '--actor', login);
    expect(stdout).toContain(`AccountContactsSet  ${login} as Ada (fuel account contact)`);
  });

  test('audit takes several types', async () => {
    const types = 'AccountOpened,KeyIssued';
    const { lines } = await fuel('audit', '--account', '7', '--type', types, '--json');
    expect(lines.map(({ type }) => type)).toEqual(types.split(','));
  });
});

test('an engine that cannot be reached is said once', async () => {
  const unreachable = commandLine({ EVENTSTORE_URL: 'esdb://127.0.0.1:9?tls=false' });
  const { code, stderr } = await unreachable.fuel('account', 'list');
  expect(code).toBe(1);
  expect(stderr.match(/ECONNREFUSED/g)).toHaveLength(1);
});

describe('in production', () => {
  test.each([
    'key off abcdefghij',
    'webhook disable abcdefghij',
    'webhook remove abcdefghij',
    'account integration 7 off',
    'delivery redeliver --cancel --key abcdefghij',
  ])('what switches off, withdraws or accepts needs a reason: fuel %s', async (line) => {
    const head = () => withEngines((engines) => engines.store().head());
    const before = await head();
    vi.stubEnv('FUEL_ENVIRONMENT', 'production');
    vi.stubEnv('FUEL_MASTER_KEY', randomBytes(32).toString('base64'));
    const refused = await fuel(...line.split(' '));
    expect(refused).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('production requires a reason'),
    });
    expect(await head()).toBe(before);
    const { stderr } = await fuel(...line.split(' '), '--reason', 'unpaid');
    expect(stderr).not.toContain('--reason');
  });

  test('what switches on, or accepts nothing, needs none', async () => {
    vi.stubEnv('FUEL_ENVIRONMENT', 'production');
    for (const line of ['account integration 7 on', 'projection rebuild transactions'])
      expect((await fuel(...line.split(' '))).stderr).not.toContain('--reason');
  });
});
