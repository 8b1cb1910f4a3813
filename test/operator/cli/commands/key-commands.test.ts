import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../../support/accounts/account-samples.ts';
import { cellsOf, commandLine } from '../../../support/service/command-line.ts';

const guessed = { type: 'AccountGuessed', data: { account_id: 7 } };
const other = 'klmnopqrst';

describe('fuel key', () => {
  test('issues a key with a limit of 60 and nothing else by default', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened());
    expect(await done('key', 'issue', '7')).toEqual({
      key: expect.stringMatching(/^svc_test_/),
      prefix: expect.any(String),
      ...{
        webhook_secret: null,
        webhook_secret_standard: null,
        account: 7,
        environment: 'staging',
        label: null,
      },
      ...{ allow_list: [], rate_limit: 60, driver_mobile: false, active: true },
      ...{ webhook_url: null, webhook_state: 'none', webhook_reason: null, webhook_since: null },
    });
    const { stdout } = await fuel('key', 'issue', '7', '--webhook-url', 'https://203.0.114.5/hook');
    expect(stdout).toMatch(
      /^key: svc_test_\S+\nwebhook secret: [A-Za-z0-9]{43}\nfor Standard Webhooks: whsec_[A-Za-z0-9+/]+=*\nKeep them now/,
    );
  });

  test('lists every key that can be read, one account’s where one is named', async () => {
    const { fuel, done, append, account, hasServed } = commandLine();
    await hasServed();
    await account(opened(), keyIssued({ allow_list: ['203.0.113.0/24', '::1'] }), onKey('KeySwitchedOff'));
    const theirs = keyIssued({ account_id: 8, prefix: other, rate_limit: 5, label: 'ERP' });
    await append('account-8', [opened('Eight', 8), theirs]);
    await append('account-9', [
      opened('Nine', 9),
      keyIssued({ account_id: 9, prefix: 'uuuuuuuuuu' }),
      guessed,
    ]);
    const seven = ['7', PREFIX, 'staging', '–', 'no', '203.0.113.0/24, ::1', '60', 'no', 'none'];
    const eight = ['8', other, 'staging', 'ERP', 'yes', 'none', '5', 'no', 'none'];
    const all = await fuel('key', 'list');
    expect([all.code, all.stderr]).toEqual([
      0,
      "account 9 can't be read, and its keys are not listed: unknown event type AccountGuessed\n",
    ]);
    expect(cellsOf(all.stdout).slice(1)).toEqual([seven, eight]);
    expect(cellsOf((await fuel('key', 'list', '--account', '7')).stdout).slice(1)).toMatchObject([
      { 1: PREFIX },
    ]);
    expect(cellsOf((await fuel('key', 'list', '--account', '8')).stdout).slice(1)).toEqual([eight]);
    const edge = { prefix: other, environment: 'staging', allow_list: [], rate_limit: 5, active: true };
    expect(await done('key', 'list', '--account', '8', '--edge')).toEqual(edge);
  });

  test('lists keys by account, in the order of their issue, with the state of the webhook', async () => {
    const { fuel, done, append, account } = commandLine();
    await append('account-8', [opened('Eight', 8), keyIssued({ account_id: 8, prefix: 'aaaaaaaaaa' })]);
    await account(opened(), keyIssued({ prefix: other, label: 'ERP' }), keyIssued(), webhookSet());
    await account(onKey('WebhookDisabled'));
    const lines = (await done('key', 'list')) as Record<string, unknown>[];
    expect(lines.map(({ account: id, prefix }) => [id, prefix])).toEqual([
      [7, other],
      [7, PREFIX],
      [8, 'aaaaaaaaaa'],
    ]);
    expect(lines).toMatchObject([
      { label: 'ERP', webhook_url: null, webhook_state: 'none', webhook_since: null },
      {
        ...{ webhook_url: 'https://example.com/hook', webhook_state: 'disabled' },
        ...{ webhook_reason: '50 failed', webhook_since: expect.stringMatching(/^20.*Z$/) },
      },
      {},
    ]);
    expect((await fuel('key', 'list')).stdout).toMatch(
      /https:\/\/example\.com\/hook +disabled +50 failed +20\S+Z\n/,
    );
  });

  test('lists and shows keys while what they were used for cannot be read, and says so', async () => {
    const { fuel, account } = commandLine();
    await account(opened(), keyIssued());
    mkdirSync(join(process.env.FUEL_DATA_DIR ?? '', 'requests.db')); // no database can be opened there
    for (const args of [['list'], ['show', PREFIX]]) {
      const { code, json, stderr } = await fuel('key', ...args, '--json');
      expect(code).toBe(0);
      expect(json).toMatchObject({ prefix: PREFIX, last_used_at: null, last_used_from: null });
      expect(stderr).toContain("when the keys were last used can't be read: ");
    }
  });

  test('shows what a change left, or that nothing had to change', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened(), keyIssued());
    expect(await done('key', 'off', PREFIX)).toMatchObject({ changed: true, prefix: PREFIX, active: false });
    expect(await done('key', 'off', PREFIX)).toMatchObject({ changed: false, active: false });
    expect(await done('key', 'on', PREFIX)).toMatchObject({ changed: true, active: true });
    expect(await done('key', 'driver-mobile', PREFIX, 'on')).toMatchObject({ driver_mobile: true });
    expect(await done('key', 'driver-mobile', PREFIX, 'off')).toMatchObject({ driver_mobile: false });
    expect((await fuel('key', 'rate-limit', PREFIX, '60')).stdout).toMatch(/^no change: already set/);
    expect((await fuel('key', 'rate-limit', 'zzzzzzzzzz', '60')).stderr).toMatch(
      /no key has the prefix zzzzzzzzzz/,
    );
  });
});
