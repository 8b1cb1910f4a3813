import { describe, expect, test } from 'vitest';
import type { AccountEvent } from '../../../../src/domain/account-events.ts';
import {
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../../support/accounts/account-samples.ts';
import { claimOptions, delivered, newDelivery, retryAt } from '../../../support/deliveries/deliveries.ts';
import { cellsOf, commandLine } from '../../../support/service/command-line.ts';
import { cancelled, confirmed } from '../../../support/transactions/e2e-samples.ts';
import { confirmedData, showing } from '../../../support/transactions/records.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const ACCESS = [
  { type: 'IntegrationEnabled', data: { account_id: 7 } } satisfies AccountEvent,
  profileSet('2026-01-01T00:00:00.000Z', null),
] as const;
const AFTER_URL = { created_at: '2026-09-03T08:00:00.000Z' };

describe('fuel transaction show', () => {
  test('shows the events and whether customers see the transaction now', async () => {
    const { fuel, done, account, append, eventsOf } = commandLine();
    await account(opened(), ...ACCESS);
    await append('transaction-1', [confirmed(1)], 1_000);
    await append('transaction-2', [confirmed(2), cancelled(2)], 2_000);
    const shown = (await fuel('transaction', 'show', '1', '--json')).json;
    const [event] = await eventsOf('transaction-1');
    const at = '1970-01-01T00:00:01.000Z';
    expect(shown).toEqual({
      id: 1,
      events: [{ revision: 0, at, type: 'TransactionConfirmed', data: event?.data }],
      visible: false,
      deliveries: [],
      not_sent: [],
      timeline: [
        { at, what: 'event', type: 'TransactionConfirmed', revision: 0, effect: 'shown', reason: null },
      ],
    });
    await done('projection', 'rebuild', 'transactions');
    expect(await done('transaction', 'show', '1')).toEqual({ ...shown, visible: true });
    const data = JSON.stringify({ ...(event?.data as object), driver: 'hidden: --personal' });
    expect((await fuel('transaction', 'show', '1')).stdout.split('\n')).toEqual([
      ...[
        'Transaction  1',
        'Visible      yes',
        'View         all of its events were applied',
        '',
        'Timeline',
      ],
      '  At                        What   Type                  Revision  Effect',
      `  ${at}  event  TransactionConfirmed         0  shown`,
      ...[
        '',
        'Events',
        '  Revision  Type                  Data',
        `         0  TransactionConfirmed  ${data}`,
        '',
      ],
    ]);
    expect(await done('transaction', 'show', '2')).toMatchObject({
      visible: false,
      events: [{}, { revision: 1 }],
    });
    expect((await fuel('transaction', 'show', '2')).stdout).toMatch(/^Transaction {2}2\nVisible +no\n/);
  });

  test('says who drove only where it is asked for', async () => {
    const { fuel, account, append } = commandLine();
    await account(opened(), ...ACCESS);
    const driver = { id: 77, name: 'Sam Field', mobile_number: '+15550100' };
    await append(
      'transaction-1',
      [{ ...confirmed(1), data: confirmedData({ transaction_id: 1, driver }) }],
      1_000,
    );
    const { stdout } = await fuel('transaction', 'show', '1');
    expect(stdout).not.toMatch(/Sam|Field|15550100/);
    const personal = await fuel('transaction', 'show', '1', '--personal');
    expect(personal.stdout).toMatch(/Sam .*Field.*15550100/);
  });

  test('shows a row of the view that no event calls for, and says so', async () => {
    const name = JSON.stringify('Sam "},"fees":" Field');
    const { fuel, account, append, withEngines } = commandLine();
    await account(opened(), ...ACCESS);
    await append('transaction-1', [confirmed(1)]);
    await withEngines(async (engines) => {
      await engines.view().reset('store', 0);
      await engines.view().replace(99, [showing({ id: 99, driverName: name })]);
    });
    const json = await fuel('transaction', 'show', '99', '--json');
    const said = expect.stringContaining('The view shows transaction 99, but no event recorded it');
    expect([json.code, json.stderr]).toEqual([0, said]);
    expect(json.json).toMatchObject({
      id: 99,
      events: [],
      visible: true,
      record: expect.stringContaining('"id":99'),
    });
    const text = await fuel('transaction', 'show', '99');
    expect(text.stdout).toMatch(/^Transaction {2}99\nVisible {6}yes\n[^{]*\nRecord +hidden: --personal$/m);
    expect((await fuel('transaction', 'show', '99', '--personal')).stdout).toContain(name);
    await withEngines((engines) => engines.queue().enqueue([newDelivery(98)]));
    const delivery = await fuel('transaction', 'show', '98', '--json');
    expect([delivery.code, delivery.json.deliveries]).toMatchObject([0, [{ transaction_id: 98 }]]);
    expect((await fuel('transaction', 'show', '97')).stderr).toMatch(/No transaction 97/);
  });

  test('says that a record is not visible while its account has no access, and why', async () => {
    const { fuel, done, account, append, withEngines } = commandLine();
    await append('transaction-1', [confirmed(1)], 1_000);
    await done('projection', 'rebuild', 'transactions');
    const shown = async () =>
      (await fuel('transaction', 'show', '1')).stdout.split('\n').slice(1, 3).join('\n');
    expect(await shown()).toMatch(/^Visible +no\nNo access +the account was never opened$/);
    await account(opened());
    expect(await shown()).toMatch(/^Visible +no\nNo access +the integration is off$/);
    await account(ACCESS[0]);
    await withEngines((engines) => engines.queue().enqueue([newDelivery(1, { prefix: PREFIX })]));
    const why = 'it has no charging profile';
    const { deliveries, ...seen } = await done('transaction', 'show', '1');
    const since = expect.stringMatching(/^20.*Z$/);
    expect({ ...seen, deliveries }).toMatchObject({
      visible: false,
      no_access: why,
      answered: { status: 403, code: 'NO_ACTIVE_CHARGING_PROFILE', since },
      deliveries: [{ state: 'held', reason: why }],
    });
    expect((await fuel('transaction', 'show', '1')).stdout).toMatch(
      new RegExp(`delivery +transaction\\.confirmed +${why} .*state held`),
    );
    expect(cellsOf((await fuel('delivery', 'list')).stdout)[1]).toMatchObject({ 1: 'held', 7: why });
    await account(ACCESS[1]);
    expect(await shown()).toMatch(/^Visible +yes\nView/);
    const [held] = deliveries;
    expect(await done('delivery', 'show', held.id)).toMatchObject({ state: 'pending', reason: null });
  });

  test('is listed by what a key was not sent, the newest first, with the reason', async () => {
    const { fuel, done, account, append, withEngines } = commandLine();
    await account(opened(), ...ACCESS, keyIssued(), webhookSet());
    for (const id of [1, 2, 3]) {
      const before = { created_at: `2026-08-0${id}T08:00:00.000Z` };
      await append(`transaction-${id}`, [confirmed(id, id === 2 ? AFTER_URL : before)]);
    }
    await done('projection', 'rebuild', 'transactions');
    await withEngines((engines) => engines.queue().enqueue([newDelivery(2, { prefix: PREFIX })]));
    const unsent = async (...args: string[]) =>
      (await fuel('delivery', 'list', '--unsent', '--key', PREFIX, '--json', ...args)).lines;
    const reason = 'the transaction was created before the webhook URL was set';
    expect(await unsent()).toMatchObject([
      { id: 3, account: 7, reason },
      { id: 1, account: 7, reason },
    ]);
    expect(await unsent('--limit', '1')).toMatchObject([{ id: 3 }]);
    expect(await unsent('--until', '2026-08-02T00:00:00Z')).toMatchObject([{ id: 1 }]);
    expect((await fuel('delivery', 'list', '--unsent', '--key', PREFIX)).stdout).toMatch(
      /Reason\n3 .*URL was set/,
    );
    for (const wrong of [['--account', '7'], ['--state', 'failed'], ['--follow']])
      expect((await fuel('delivery', 'list', '--unsent', '--key', PREFIX, ...wrong)).code).toBe(2);
    expect((await fuel('delivery', 'list', '--unsent')).code).toBe(2);
  });

  test('says of every key whether it was sent, and why not', async () => {
    const { fuel, done, account, append, withEngines } = commandLine();
    const names = ['klmnopqrst', 'uuuuuuuuuu'].map((prefix) => ({ prefix }));
    await account(opened(), keyIssued(), ...names.map(keyIssued), webhookSet(), ...names.map(webhookSet));
    await account({ ...onKey('KeySwitchedOff'), data: { account_id: 7, ...names[0] } } as never);
    await append('transaction-1', [confirmed(1, AFTER_URL)]);
    await withEngines(async (engines) => {
      const [claim] = await engines
        .queue()
        .enqueue([newDelivery(1, { prefix: PREFIX })], claimOptions(9_000));
      if (claim !== undefined) await engines.queue().report([delivered(claim, 10_000)]);
    });
    const { deliveries, not_sent } = await done('transaction', 'show', '1');
    expect(deliveries).toMatchObject([{ key: PREFIX, state: 'delivered' }]);
    expect(not_sent).toEqual([
      { key: 'klmnopqrst', reason: 'the key is switched off' },
      { key: 'uuuuuuuuuu', reason: 'it is owed and not queued yet' },
    ]);
    const lines = cellsOf((await fuel('transaction', 'show', '1')).stdout).slice(4, -4);
    const [delivery] = deliveries;
    const time = expect.stringMatching(/^(1970|20\d\d)-.*Z$/);
    const ofDelivery = `key ${PREFIX}, delivery ${delivery.id}`;
    expect(lines).toEqual([
      ['Timeline'],
      ['At', 'What', 'Details'],
      [time, 'delivery', `${ofDelivery}, type transaction.confirmed, state delivered`],
      [time, 'attempt', `${ofDelivery}, state delivered, answer attempt 1: answered 204 after 250 ms`],
      [time, 'event', 'type TransactionConfirmed, revision 0, effect shown'],
      [time, 'not sent', 'key klmnopqrst, reason the key is switched off'],
      [time, 'not sent', 'key uuuuuuuuuu, reason it is owed and not queued yet'],
    ]);
  });

  test('tells in the order of time what happened: events, what was sent and answered, and what is due', async () => {
    const { done, account, append, withEngines } = commandLine();
    await account(opened(), ...ACCESS, keyIssued(), webhookSet());
    await append('transaction-1', [confirmed(1, AFTER_URL)], 1_000);
    await append('transaction-1', [confirmed(1, { ...AFTER_URL, odometer_reading: 1 })], 30_000);
    await withEngines(async (engines) => {
      const made = newDelivery(1, { prefix: PREFIX, createdAtMs: 2_000 });
      const [claim] = await engines.queue().enqueue([made], claimOptions(9_000));
      if (claim !== undefined) await engines.queue().report([retryAt(claim, 10_000, 40_000)]);
    });
    const { timeline } = await done('transaction', 'show', '1');
    expect(timeline).toMatchObject(
      [
        { at: '1970-01-01T00:00:01.000Z', what: 'event', effect: 'shown' },
        { at: '1970-01-01T00:00:02.000Z', what: 'delivery', key: PREFIX, state: 'pending' },
        { at: '1970-01-01T00:00:10.000Z', what: 'attempt', key: PREFIX, number: 1, ok: false },
        { at: '1970-01-01T00:00:30.000Z', what: 'event', effect: 'parked', reason: /other content/ },
        { at: '1970-01-01T00:00:40.000Z', what: 'due', key: PREFIX },
      ].map((entry) =>
        'reason' in entry ? { ...entry, reason: expect.stringMatching(entry.reason) } : entry,
      ),
    );
  });

  test('goes by the days that the delivery log is kept', async () => {
    const { done, account, append } = commandLine({ FUEL_DELIVERY_RETENTION_DAYS: '2' });
    await account(opened(), keyIssued(), webhookSet());
    await append('transaction-1', [confirmed(1, AFTER_URL)], Date.now() - 2 * DAY_MS + MINUTE_MS);
    await append('transaction-2', [confirmed(2, AFTER_URL)], Date.now() - 2 * DAY_MS - MINUTE_MS);
    const reasonOf = async (id: string) => (await done('transaction', 'show', id)).not_sent[0].reason;
    expect(await reasonOf('1')).toBe('it is owed and not queued yet');
    expect(await reasonOf('2')).toBe('the transaction was recorded longer ago than the delivery log is kept');
  });
});
