import { describe, expect, test } from 'vitest';
import type { AccountEvent } from '../../../../src/domain/account-events.ts';
import {
  corporateAdded,
  groupAdded,
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../../support/accounts/account-samples.ts';
import { cellsOf, commandLine } from '../../../support/service/command-line.ts';

const DAY_MS = 86_400_000;
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const integrationOn = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;
const guessed = { type: 'AccountGuessed', data: { account_id: 7 } };
const other = 'klmnopqrst';

const OFF = { status: 403, code: 'API_INTEGRATION_NOT_ENABLED', since: expect.stringMatching(/^20.*Z$/) };

describe('fuel account list and show', () => {
  test('say of each account what it may do now', async () => {
    const { fuel, done, append, account } = commandLine();
    await account(opened(), keyIssued(), keyIssued({ prefix: other }), integrationOn);
    const ends = daysFromNow(1);
    await append('account-8', [opened('Eight', 8)]);
    await account(profileSet(daysFromNow(-1), ends));
    await append('account-8', [
      {
        type: 'ChargingProfileSet',
        data: { account_id: 8, profile: 'p', from: daysFromNow(-2), to: daysFromNow(-1) },
      },
    ]);
    const none = { closed: null, webhooks: 0, webhook_state: 'none', unreadable: null };
    expect(await done('account', 'list')).toEqual([
      {
        ...{ id: 7, name: 'Harbour Freight', integration: true, charging_profile_active: true, keys: 2 },
        ...{ access: true, access_until: ends, no_access_reason: null, answered: null, ...none },
      },
      {
        ...{ id: 8, name: 'Eight', integration: false, charging_profile_active: false, keys: 0 },
        ...{ access: false, access_until: null, no_access_reason: 'the integration is off', answered: OFF },
        ...none,
      },
    ]);
    expect(cellsOf((await fuel('account', 'list')).stdout)).toEqual([
      [
        ...['Account', 'Name', 'Integration', 'Charging profile active', 'Access', 'Access until'],
        ...['No access reason', 'Answered', 'Keys', 'Webhooks', 'Webhook state'],
      ],
      ['7', 'Harbour Freight', 'yes', 'yes', 'yes', ends, '–', '–', '2', '0', 'none'],
      [
        ...['8', 'Eight', 'no', 'no', 'no', '–', 'the integration is off'],
        ...[
          expect.stringMatching(/^status 403, code API_INTEGRATION_NOT_ENABLED, since 20/),
          '0',
          '0',
          'none',
        ],
      ],
    ]);
  });

  test('leave out a closed account, unless it is asked for, and say since when and why', async () => {
    const { fuel, done, account, append } = commandLine();
    await account(opened(), integrationOn, keyIssued());
    await append('account-8', [opened('Eight', 8)]);
    expect(await done('account', 'close', '7', '--reason', 'contract ended')).toMatchObject({
      ...{ changed: true, closed: { reason: 'contract ended' }, integration: false },
    });
    expect(await done('account', 'list')).toMatchObject({ id: 8 });
    const answered = { ...OFF, status: 401, code: 'INVALID_API_KEY' };
    const why = { access: false, no_access_reason: 'closed: contract ended', answered };
    const line = { id: 7, ...why, webhook_state: 'none' };
    expect(await done('account', 'list', '--closed')).toMatchObject([line, { id: 8, closed: null }]);
    expect((await fuel('account', 'list', '--closed')).stdout).toMatch(
      /7 +Harbour Freight +20\S+Z +no .* closed: contract ended/,
    );
    expect((await fuel('account', 'show', '7')).stdout).toMatch(
      /Closed\n {2}Reason +contract ended\n {2}Since +20/,
    );
    expect(await fuel('key', 'on', PREFIX)).toMatchObject({ code: 1, stderr: /reopen 7 --reason … first/ });
    expect(await done('account', 'reopen', '7', '--reason', 'renewed')).toMatchObject({ closed: null });
    expect(await done('key', 'list', '--account', '7')).toMatchObject({ active: false });
  });

  test('say why there is no access, and how the webhooks of the keys that are on are', async () => {
    const { done, append, account } = commandLine();
    const [past, tomorrow, later] = [-1, 1, 2].map(daysFromNow) as [string, string, string];
    const onIn = (id: number, ...events: readonly object[]) =>
      append(`account-${id}`, [
        opened(`${id}`, id),
        ...[integrationOn, ...events].map((event) => {
          const { type, data } = event as AccountEvent;
          return { type, data: { ...data, account_id: id } };
        }),
      ]);
    const third = { prefix: 'cccccccccc' };
    await onIn(12, profileSet(past, null), keyIssued(third), webhookSet(third));
    await onIn(10, profileSet(later, null, 'b'), profileSet(tomorrow, null, 'a'));
    await onIn(9);
    await onIn(11, profileSet(daysFromNow(-9), daysFromNow(-8), 'b'), profileSet(daysFromNow(-2), past, 'a'));
    const second = { prefix: other };
    await account(opened(), keyIssued(), webhookSet(), keyIssued(second), webhookSet(second));
    await account(onKey('WebhookDisabled'));
    const listed = (await done('account', 'list')) as Record<string, unknown>[];
    expect(listed.map(({ id, no_access_reason }) => [id, no_access_reason])).toEqual([
      [7, 'the integration is off'],
      [9, 'it has no charging profile'],
      [10, `its charging profile begins at ${tomorrow}`],
      [11, `its charging profile ended at ${past}`],
      [12, null],
    ]);
    expect(listed.at(0)).toMatchObject({ webhooks: 2, webhook_state: 'disabled' });
    const one = { webhooks: 1, webhook_state: 'active' };
    expect(listed.at(-1)).toMatchObject({ access: true, access_until: null, ...one });
    await account(onKey('KeySwitchedOff'));
    expect((await done('account', 'list'))[0]).toMatchObject({ keys: 1, ...one });
  });

  test('say why an account cannot be read, and show nothing else of it', async () => {
    const { fuel, done, append, account } = commandLine();
    await account(opened(), keyIssued(), integrationOn);
    await append('account-7', [guessed]);
    const unreadable = expect.stringContaining('AccountGuessed');
    const unknown = { name: null, closed: null, integration: null, keys: null, webhooks: null };
    const line = {
      ...{ id: 7, ...unknown, webhook_state: null, charging_profile_active: false, unreadable },
      ...{ access: false, access_until: null, no_access_reason: 'the account can not be read' },
      answered: { status: 503, code: 'SERVICE_UNAVAILABLE', since: null },
    };
    expect(await done('account', 'list')).toEqual(line);
    expect((await fuel('account', 'list')).stdout).toMatch(
      /7 .*SERVICE_UNAVAILABLE.*event type AccountGuessed/,
    );
    expect((await fuel('account', 'show', '7')).stdout).toContain('unknown event type AccountGuessed');
    expect(await done('account', 'show', '7')).toEqual({
      id: 7,
      unreadable: { position: expect.any(Number), reason: unreadable },
    });
  });

  test('show an account with all that belongs to it, as text unless told otherwise', async () => {
    const { fuel, done, account } = commandLine();
    await account(opened(), groupAdded(), corporateAdded(3), keyIssued(), webhookSet());
    await account({ type: 'AccountContactsSet', data: { account_id: 7, emails: ['a@b.example'] } });
    await account(profileSet('2026-01-01T00:00:00Z', null));
    expect(await done('account', 'show', '7')).toEqual({
      id: 7,
      name: 'Harbour Freight',
      closed: null,
      integration: false,
      contacts: ['a@b.example'],
      ...{ access: false, access_until: null, no_access_reason: 'the integration is off', answered: OFF },
      profiles: [{ profile: 'standard', from: '2026-01-01T00:00:00.000Z', to: null }],
      groups: [{ id: 3, name: 'Depots' }],
      corporates: [{ id: 31, name: 'North Depot', group: 3 }],
      keys: [
        {
          ...{ account: 7, prefix: PREFIX, environment: 'staging', label: null, active: true },
          ...{ allow_list: [], rate_limit: 60, driver_mobile: false },
          ...{ webhook_url: 'https://example.com/hook', webhook_state: 'active' },
          ...{ webhook_reason: null, webhook_since: null },
        },
      ],
      unreadable: null,
    });
    const { stdout } = await fuel('account', 'show', '7');
    const lines = stdout
      .replaceAll(/ {2,}/g, '  ')
      .replace(/Since {2}\S+Z/, 'Since  T')
      .split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        ...['Account  7', 'Name  Harbour Freight', 'Access  no', 'Integration  no', 'Closed  –'],
        ...['Answered', '  Status  403', '  Code  API_INTEGRATION_NOT_ENABLED', '  Since  T'],
        ...['Profiles', '  Profile  From', '  standard  2026-01-01T00:00:00.000Z', 'Groups', '  3  Depots'],
        ...['Corporates', '  31  North Depot  3'],
      ]),
    );
  });

  test('show an account as it was at a time, whatever happened since', async () => {
    const { fuel, done, account, append } = commandLine();
    const start = Date.now() - 10 * 60_000;
    const at = (minutes: number) => new Date(start + minutes * 60_000).toISOString();
    await append('account-7', [opened('North')], start);
    await append(
      'account-7',
      [integrationOn, profileSet('2026-01-01T00:00:00.000Z', null)],
      start + 2 * 60_000,
    );
    await account({ type: 'AccountRenamed', data: { account_id: 7, name: 'Later' } });
    const shown = await done('account', 'show', '7', '--at', at(3));
    expect(shown).toMatchObject({ at: at(3), name: 'North', access: true, integration: true });
    expect(await done('account', 'show', '7', '--at', at(1))).toMatchObject({ access: false });
    expect(await done('account', 'show', '7')).toMatchObject({ name: 'Later' });
    const text = await fuel('account', 'show', '7', '--at', at(1));
    expect(text.stdout).toMatch(/^At +\d/);
    const unopened = await fuel('account', 'show', '7', '--at', at(-1));
    expect([unopened.code, unopened.stderr]).toEqual([1, expect.stringContaining('was not open at')]);
    expect((await fuel('account', 'show', '7', '--at', at(60))).code).toBe(2);
  });
});

describe('a command that changes an account', () => {
  test('says what changed, or that nothing had to', async () => {
    const { fuel, done } = commandLine();
    for (const changed of [true, false])
      expect(await done('account', 'open', '7', '--name', 'Seven')).toMatchObject({ changed, name: 'Seven' });
    expect((await fuel('account', 'integration', '7', 'on')).stdout).toBe('done\n');
    expect((await fuel('account', 'integration', '7', 'on')).stdout).toBe('no change: already set\n');
    const off = await done('account', 'integration', '7', 'off');
    expect(off).toMatchObject({ changed: true, integration: false });
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
