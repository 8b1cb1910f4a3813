import { describe, expect, test } from 'vitest';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { commandLine } from '../../support/service/command-line.ts';

const DAY_MS = 86_400_000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const integrationOn = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;
const guessed = { type: 'AccountGuessed', data: { account_id: 7 } };
const other = 'klmnopqrst';

describe('fuel account list and show', () => {
  test('say of each account what it may do now', async () => {
    const { fuel, done, append, account } = commandLine();
    await account(opened(), keyIssued(), keyIssued({ prefix: other }), integrationOn);
    await account(profileSet(daysFromNow(-1), daysFromNow(1)));
    await append('account-8', [opened('Eight', 8)]);
    await append('account-8', [
      {
        type: 'ChargingProfileSet',
        data: { account_id: 8, profile: 'p', from: daysFromNow(-2), to: daysFromNow(-1) },
      },
    ]);
    expect(await done('account', 'list')).toEqual([
      {
        id: 7,
        name: 'Harbour Freight',
        integration: true,
        charging_profile_active: true,
        keys: 2,
        unreadable: null,
      },
      { id: 8, name: 'Eight', integration: false, charging_profile_active: false, keys: 0, unreadable: null },
    ]);
    expect((await fuel('account', 'list')).stdout).toBe(
      '7  Harbour Freight  integration on  2 keys\n8  Eight  integration off  0 keys\n',
    );
  });

  test('say why an account can not be read, and show nothing else of it', async () => {
    const { fuel, done, append, account } = commandLine();
    await account(opened(), keyIssued(), integrationOn);
    await append('account-7', [guessed]);
    const unreadable = expect.stringContaining('AccountGuessed');
    const line = {
      id: 7,
      name: null,
      integration: null,
      charging_profile_active: false,
      keys: null,
      unreadable,
    };
    expect(await done('account', 'list')).toEqual(line);
    expect((await fuel('account', 'list')).stdout).toBe('7  (unreadable)  integration off  ? keys\n');
    expect(await done('account', 'show', '7')).toEqual({
      id: 7,
      unreadable: { position: expect.any(Number), reason: unreadable },
    });
  });

  test('show an account with all that belongs to it', async () => {
    const { done, account } = commandLine();
    await account(opened(), groupAdded(), corporateAdded(3), keyIssued(), webhookSet());
    await account({ type: 'AccountContactsSet', data: { account_id: 7, emails: ['a@b.example'] } });
    await account(profileSet('2026-01-01T00:00:00Z', null));
    expect(await done('account', 'show', '7')).toEqual({
      id: 7,
      name: 'Harbour Freight',
      integration: false,
      contacts: ['a@b.example'],
      profiles: [{ profile: 'standard', from: '2026-01-01T00:00:00.000Z', to: null }],
      groups: [{ id: 3, name: 'Depots' }],
      corporates: [{ id: 31, name: 'North Depot', group: 3 }],
      keys: [
        {
          account: 7,
          prefix: PREFIX,
          environment: 'staging',
          label: null,
          active: true,
          allow_list: [],
          rate_limit: 60,
          driver_mobile: false,
          webhook_url: 'https://example.com/hook',
        },
      ],
      unreadable: null,
    });
  });
});

describe('a command that changes an account', () => {
  test('says what changed, or that nothing had to', async () => {
    const { fuel, done } = commandLine();
    expect(await done('account', 'open', '7', '--name', 'Seven')).toMatchObject({
      changed: true,
      name: 'Seven',
    });
    expect(await done('account', 'open', '7', '--name', 'Seven')).toMatchObject({
      changed: false,
      name: 'Seven',
    });
    expect((await fuel('account', 'integration', '7', 'on')).stdout).toBe('done\n');
    expect((await fuel('account', 'integration', '7', 'on')).stdout).toBe(
      'nothing to change: it is so already\n',
    );
    expect(await done('account', 'integration', '7', 'off')).toMatchObject({
      changed: true,
      integration: false,
    });
  });

  test('leaves a profile open-ended, and a corporate in its group, where nothing else is said', async () => {
    const { done, account } = commandLine();
    await account(opened(), groupAdded(), corporateAdded(3));
    const from = '2026-01-01T00:00:00.000Z';
    expect(await done('account', 'profile', '7', '--profile', 'p', '--from', from)).toMatchObject({
      profiles: [{ profile: 'p', from, to: null }],
    });
    const renamed = await done('account', 'corporate', '7', '31', '--name', 'South');
    expect(renamed.corporates).toEqual([{ id: 31, name: 'South', group: 3 }]);
    const moved = await done('account', 'corporate', '7', '31', '--name', 'South', '--no-group');
    expect(moved.corporates).toEqual([{ id: 31, name: 'South', group: null }]);
  });

  test('records the actor if one is named; a command that only shows does not take one', async () => {
    const { fuel, eventsOf } = commandLine();
    await fuel('account', 'open', '7', '--name', 'Seven', '--actor', 'Ada');
    expect(await eventsOf('account-7')).toMatchObject([
      { metadata: { actor: 'Ada', command: 'fuel account open' } },
    ]);
    for (const option of ['--actor', '--wait']) {
      expect((await fuel('account', 'list', option, 'x')).code).toBe(2);
    }
  });
});

describe('fuel key', () => {
  test('issues a key with a limit of 60 and nothing else by default', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened());
    expect(await done('key', 'issue', '7')).toEqual({
      key: expect.stringMatching(/^svc_test_/),
      prefix: expect.any(String),
      webhook_secret: null,
      account: 7,
      environment: 'staging',
      label: null,
      allow_list: [],
      rate_limit: 60,
      driver_mobile: false,
      webhook_url: null,
    });
    const { stdout } = await fuel('key', 'issue', '7', '--webhook-url', 'https://203.0.114.5/hook');
    expect(stdout).toMatch(/^key: svc_test_\S+\nwebhook secret: [A-Za-z0-9]{43}\nKeep them now/);
  });

  test('lists every key that can be read, one account’s where one is named', async () => {
    const { fuel, done, append, account } = commandLine();
    await account(opened(), keyIssued({ allow_list: ['203.0.113.0/24', '::1'] }), onKey('KeySwitchedOff'));
    const theirs = keyIssued({ account_id: 8, prefix: other, rate_limit: 5 });
    await append('account-8', [opened('Eight', 8), theirs]);
    await append('account-9', [
      opened('Nine', 9),
      keyIssued({ account_id: 9, prefix: 'uuuuuuuuuu' }),
      guessed,
    ]);
    const seven = `${PREFIX}  account 7  off  60/60 s  203.0.113.0/24,::1\n`;
    const eight = `${other}  account 8  on  5/60 s  any address\n`;
    expect((await fuel('key', 'list')).stdout).toBe(seven + eight);
    expect((await fuel('key', 'list', '--account', '7')).stdout).toBe(seven);
    expect((await fuel('key', 'list', '--account', '8')).stdout).toBe(eight);
    expect(await done('key', 'list', '--account', '8', '--edge')).toEqual({
      prefix: other,
      environment: 'staging',
      allow_list: [],
      rate_limit: 5,
      active: true,
    });
    expect(await fuel('key', 'list', '--account', '99')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'fuel: REFUSED: account 99 is not known: fuel account list\n',
    });
  });

  test('shows what a change left, or that nothing had to change', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened(), keyIssued());
    expect(await done('key', 'off', PREFIX)).toMatchObject({ changed: true, prefix: PREFIX, active: false });
    expect(await done('key', 'off', PREFIX)).toMatchObject({ changed: false, active: false });
    expect(await done('key', 'on', PREFIX)).toMatchObject({ changed: true, active: true });
    expect(await done('key', 'driver-mobile', PREFIX, 'on')).toMatchObject({ driver_mobile: true });
    expect(await done('key', 'driver-mobile', PREFIX, 'off')).toMatchObject({ driver_mobile: false });
    expect((await fuel('key', 'rate-limit', PREFIX, '60')).stdout).toMatch(/nothing to change/);
    expect((await fuel('key', 'rate-limit', 'zzzzzzzzzz', '60')).stderr).toMatch(
      /no key has the prefix zzzzzzzzzz/,
    );
  });
});
