import { describe, expect, test } from 'vitest';
import { type AccountWriter, changeAccount } from '../../src/accounts/change-account.ts';
import type { AccountCommand } from '../../src/domain/account-commands.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { KEY, keyIssued, onKey, opened, PREFIX, webhookSet } from '../support/accounts/account-samples.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { replacing } from '../support/interposed.ts';

const contacts = (...emails: string[]): AccountCommand => ({ type: 'SetContacts', accountId: 7, emails });
const setGroup = (name: string): AccountCommand => ({
  type: 'SetCorporateGroup',
  accountId: 7,
  groupId: 3,
  name,
});
const setCorporate = (groupId: number): AccountCommand => ({
  type: 'SetCorporate',
  accountId: 7,
  corporateId: 31,
  name: 'North Depot',
  groupId,
});

function start() {
  const { store, clock, author, account } = openPushStores();
  const change = (commands: readonly AccountCommand[], other: Partial<AccountWriter> = {}) =>
    changeAccount({ store, clock, author, ...other }, 7, commands);
  const types = async () => (await store.readStream('account-7')).map(({ type }) => type);
  return { store, clock, author, account, change, types };
}

/** Returns the store, but `meanwhile` runs between each read of the stream and the append that follows. */
function interrupted(store: EventStore, meanwhile: (time: number) => Promise<unknown>): EventStore {
  let times = 0;
  return replacing(store, {
    async append(appends) {
      await meanwhile(++times);
      return store.append(appends);
    },
  });
}

describe('commands on an account', () => {
  test('are recorded together, each decided on what those before it change', async () => {
    const { change, types } = start();
    const open: AccountCommand = { type: 'OpenAccount', accountId: 7, name: 'Harbour Freight' };
    const { events, account } = await change([
      open,
      setGroup('Depots'),
      setCorporate(3),
      contacts('a@b.example'),
    ]);
    expect(events).toHaveLength(4);
    expect(account).toMatchObject({ name: 'Harbour Freight', emails: ['a@b.example'] });
    expect(account.corporates.get(31)).toEqual({ name: 'North Depot', groupId: 3 });
    expect(await types()).toEqual([
      'AccountOpened',
      'CorporateGroupAdded',
      'CorporateAdded',
      'AccountContactsSet',
    ]);
  });

  test('are recorded all or none: one that is refused keeps the others out, and its reason is told', async () => {
    const { account, change, types } = start();
    await account(opened());
    await expect(
      change([contacts('a@b.example'), setCorporate(4), setGroup('Depots')]),
    ).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('has no corporate group 4'),
    });
    expect(await types()).toEqual(['AccountOpened']);
  });

  test('that change nothing record nothing, and show the account as it is', async () => {
    const { account, change, types } = start();
    await account(opened());
    expect(await change([contacts('a@b.example'), contacts('a@b.example')])).toMatchObject({
      events: [{ type: 'AccountContactsSet' }],
    });
    const again = await change([{ type: 'DisableIntegration', accountId: 7 }, contacts('a@b.example')]);
    expect(again).toMatchObject({ events: [], account: { emails: ['a@b.example'] } });
    expect(await types()).toEqual(['AccountOpened', 'AccountContactsSet']);
  });

  test('carry who gave them and when, and are joined by one id', async () => {
    const { store, clock, account, change } = start();
    await account(opened());
    clock.advance(5_000);
    await change([contacts('a@b.example'), setGroup('Depots')], {
      author: { actor: 'ada', command: 'fuel x' },
    });
    await change([setGroup('Yards')], {
      author: { actor: 'ada', command: 'fuel y', correlationId: 'given' },
    });
    const [, ...metadata] = (await store.readStream('account-7')).map((event) => event.metadata as object);
    const at = formatDateTime(clock.now());
    const joined = (metadata[0] as { correlation_id: string }).correlation_id;
    expect(metadata).toMatchObject([
      { actor: 'ada', command: 'fuel x', at, correlation_id: joined },
      { actor: 'ada', command: 'fuel x', at, correlation_id: joined },
      { actor: 'ada', command: 'fuel y', at, correlation_id: 'given' },
    ]);
    expect(joined).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('are shown with the moment of the command, as every later reader of the stream sees it', async () => {
    const { clock, account, change } = start();
    await account(opened(), keyIssued(), webhookSet());
    clock.advance(5_000);
    const evidence = { failedInARow: 50, failingSinceMs: null, lastAnswers: [] };
    const disable: AccountCommand = { type: 'DisableWebhook', ...KEY, reason: '50 failed', evidence };
    const sinceMs = clock.now();
    expect((await change([disable])).account.keys.get(PREFIX)?.webhook?.disabled?.sinceMs).toBe(sinceMs);
    clock.advance(5_000);
    expect((await change([disable])).account.keys.get(PREFIX)?.webhook?.disabled?.sinceMs).toBe(sinceMs);
  });

  test('on a stream that opens another account are refused, as nothing of it is served', async () => {
    const { change, account, types } = start();
    await account(opened('Eight', 8));
    await expect(change([contacts()])).rejects.toMatchObject({
      code: 'REFUSED',
      message: "account 7 can't be read: event 0 of its stream, AccountOpened: it is about account 8",
    });
    expect(await types()).toEqual(['AccountOpened']);
  });

  test('on an account that is not open are refused', async () => {
    const { change, types } = start();
    await expect(change([contacts()])).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await types()).toEqual([]);
  });
});

describe('two changes of one account at once', () => {
  test('are decided one after the other: what the first one did is not undone or doubled', async () => {
    const { store, account, change, types } = start();
    await account(opened(), keyIssued());
    const off: AccountCommand = { type: 'SwitchKeyOff', ...KEY };
    const other = (time: number) => (time === 1 ? account(onKey('KeySwitchedOff')) : Promise.resolve());
    expect(await change([off], { store: interrupted(store, other) })).toMatchObject({ events: [] });
    expect(await types()).toEqual(['AccountOpened', 'KeyIssued', 'KeySwitchedOff']);
  });

  test('that open one account leave it under one name', async () => {
    const { store, account, change, types } = start();
    const open: AccountCommand = { type: 'OpenAccount', accountId: 7, name: 'Other' };
    const other = () => account(opened());
    await expect(change([open], { store: interrupted(store, other) })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('open under the name Harbour Freight'),
    });
    expect(await types()).toEqual(['AccountOpened']);
  });

  test('are decided again a limited number of times', async () => {
    const { store, account, change, types } = start();
    await account(opened());
    let turn = 0;
    const others = (until: number) => async (time: number) => {
      if (time < until)
        await account({ type: 'AccountContactsSet', data: { account_id: 7, emails: [`${turn++}`] } });
    };
    expect(await change([setGroup('Depots')], { store: interrupted(store, others(20)) })).toMatchObject({
      events: [{ type: 'CorporateGroupAdded' }],
    });
    await expect(
      change([setGroup('Yards')], { store: interrupted(store, others(100)) }),
    ).rejects.toMatchObject({
      code: 'REFUSED',
      message: 'account 7 keeps being changed by others. Try again',
    });
    expect(turn).toBe(19 + 20);
    expect(await types()).not.toContain('CorporateGroupRenamed');
  });
});

test('an erased account takes no command', async () => {
  const { store, change } = start();
  await store.erase('account-7');
  const open: AccountCommand = { type: 'OpenAccount', accountId: 7, name: 'Other' };
  await expect(change([open])).rejects.toMatchObject({ code: 'REFUSED', message: 'account 7 was erased' });
});

test('an account with an event that cannot be read, or not follow, takes no command, and the event is named', async () => {
  for (const bad of [
    { type: 'AccountGuessed', data: { account_id: 7 } },
    { type: 'TransactionErased', data: { transaction_id: 1, account_id: 7, reason: 'x' } },
    { type: 'IntegrationEnabled', data: { account_id: 'seven' } },
    onKey('KeySwitchedOff'), // for a key that was never issued
  ]) {
    const { account, change, types } = start();
    await account(opened(), bad as never);
    await expect(change([contacts('a@b.example')])).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining(`account 7 can't be read: event 1 of its stream, ${bad.type}: `),
    });
    expect(await types()).toHaveLength(2);
  }
});
