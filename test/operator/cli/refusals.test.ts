import { randomBytes } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { keyIssued, opened } from '../../support/accounts/account-samples.ts';
import { commandLine, sharedCommandLine } from '../../support/service/command-line.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';

const { fuel, done, append, withEngines } = sharedCommandLine(async (cli) => {
  await cli.hasServed();
  await cli.account(opened(), keyIssued());
  await cli.append('account-8', [opened('Eight', 8)]);
  await cli.done('projection', 'rebuild', 'transactions');
});

describe('nothing is answered with silence', () => {
  test('an account that was never opened is unknown to all commands that find nothing of it', async () => {
    await append('transaction-1', [confirmed(1, { account_id: 9 })]);
    await append('transaction-2', [confirmed(2, { account_id: 10 }), voided(2, { account_id: 10 })]);
    await done('projection', 'rebuild', 'transactions');
    for (const line of ['audit --account 10', 'verify view --account 9', 'transaction list --account 9'])
      expect([line, (await fuel(...line.split(' '))).code]).toEqual([line, 0]);
    for (const line of [
      'audit --account 9 --type KeyIssued',
      'delivery list --account 9',
      'transaction list --account 9 --to 2000-01-01T00:00:00Z',
      'verify deliveries --account 9 --until 2000-01-01T00:00:00Z',
    ]) {
      const { code, stderr } = await fuel(...line.split(' '));
      expect([line, code, stderr]).toEqual([line, 1, expect.stringMatching(/^fuel: No account (9|10)\. /)]);
    }
  });

  test('what is followed until a time ends with it', async () => {
    for (const noun of [['audit'], ['delivery', 'list']]) {
      const until = new Date(Date.now() + 700).toISOString();
      const { code, stderr } = await fuel(...noun, '--account', '7', '--follow', '--until', until);
      expect([noun, code, stderr, Date.now() > Date.parse(until)]).toEqual([noun, 0, '', true]);
    }
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
      stderr: expect.stringContaining('--reason is required in production'),
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
