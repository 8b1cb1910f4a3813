import { describe, expect, test } from 'vitest';
import { changeAccount } from '../../../src/accounts/change-account.ts';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import { readKeys } from '../../../src/accounts/rows/read-rows.ts';
import type { Ciphertext } from '../../../src/domain/account-events.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import {
  type RewrapOptions,
  rewrapSecrets,
  secretsByMasterKey,
} from '../../../src/operator/keys/webhook-secrets.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { KeptRows } from '../../support/accounts/kept-rows.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';

const [OLD, NEW, LOST] = [1, 2, 3].map((n) => Buffer.alloc(32, n)) as [Buffer, Buffer, Buffer];
const old = new MasterKeys([OLD]);
const rotated = new MasterKeys([NEW, OLD]);
const fresh = new MasterKeys([NEW]);
const [oldId = '', newId = ''] = [old, fresh].map((keys) => keys.identities()[0]?.master_key_id);
const other = 'klmnopqrst';

function start() {
  const { store, clock, author, account, append } = openPushStores();
  const rows = new KeptRows(store, clock);
  /** The rows of accounts with every event. */
  const current = async () => {
    await rows.follow();
    return rows.tables;
  };
  const writer = { store, clock, author };
  /** A key of account 7 with a webhook, its secret under the first of these master keys. */
  const withWebhook = (prefix: string, secret: Ciphertext) =>
    account(keyIssued({ prefix }), webhookSet({ prefix, secret }));
  const rewrap = async (
    masterKeys: MasterKeys,
    others: Partial<RewrapOptions> = {},
    on: EventStore = store,
  ) => {
    const unreadable: [prefix: string, reason: string][] = [];
    const counts = await rewrapSecrets(
      { ...writer, store: on },
      {
        accounts: await current(),
        masterKeys,
        onUnreadable: (...fault) => void unreadable.push(fault),
        onProgress: () => undefined,
        signal: new AbortController().signal,
        ...others,
      },
    );
    return { counts, unreadable };
  };
  const secretOf = async (prefix: string) => {
    const secret = (await readKeys(await current(), [prefix])).get(prefix)?.key.webhookSecret;
    if (secret === null || secret === undefined) throw new Error(`${prefix} has no secret`);
    return secret;
  };
  return { store, account, append, writer, withWebhook, rewrap, secretOf, current };
}

describe('webhook secrets', () => {
  test('are encrypted anew under the first master key, once, and stay the same', async () => {
    const { store, account, withWebhook, rewrap, secretOf } = start();
    await account(opened());
    await withWebhook(PREFIX, old.encryptSecret({ prefix: PREFIX, secret: 'first' }));
    await withWebhook(other, old.encryptSecret({ prefix: other, secret: 'second' }));
    await account(keyIssued({ prefix: 'without123' }), onKey('WebhookRemoved'), onKey('KeySwitchedOff'));
    expect(await rewrap(rotated)).toEqual({
      counts: { rewrapped: 2, unchanged: 0, unreadable: 0 },
      unreadable: [],
    });
    expect(fresh.decryptSecret(PREFIX, await secretOf(PREFIX))).toBe('first');
    expect(fresh.decryptSecret(other, await secretOf(other))).toBe('second');
    const length = (await store.readStream('account-7')).length;
    expect((await rewrap(rotated)).counts).toEqual({ rewrapped: 0, unchanged: 2, unreadable: 0 });
    expect((await rewrap(fresh)).counts).toEqual({ rewrapped: 0, unchanged: 2, unreadable: 0 });
    expect(await store.readStream('account-7')).toHaveLength(length);
  });

  test('that cannot be read are named and left, and the others are rewrapped', async () => {
    const { account, append, withWebhook, rewrap, secretOf } = start();
    await account(opened());
    const lost = new MasterKeys([LOST]).encryptSecret({ prefix: PREFIX, secret: 'first' });
    await withWebhook(PREFIX, lost);
    await withWebhook(other, old.encryptSecret({ prefix: other, secret: 'second' }));
    const damaged = { ...fresh.encryptSecret({ prefix: 'damaged123', secret: 'third' }), tag: lost.tag };
    await withWebhook('damaged123', damaged);
    const theirs = { account_id: 8, prefix: 'closed1234' };
    const secret = old.encryptSecret({ prefix: theirs.prefix, secret: 'fourth' });
    await append('account-8', opened('Eight', 8), keyIssued(theirs), webhookSet({ ...theirs, secret }));
    await append('account-8', { type: 'AccountGuessed', data: {} });
    expect(await rewrap(rotated)).toEqual({
      counts: { rewrapped: 1, unchanged: 0, unreadable: 3 },
      unreadable: [
        ['damaged123', expect.stringContaining('was changed')],
        [
          PREFIX,
          expect.stringContaining(`master key ${lost.master_key_id}, which is not in FUEL_MASTER_KEY`),
        ],
        ['closed1234', "its account 8 can't be read: unknown event type AccountGuessed"],
      ],
    });
    expect(await secretOf(PREFIX)).toEqual(lost);
  });

  test('are rewrapped once where two rewraps meet, and beside a changed URL', async () => {
    const { store, account, writer, withWebhook, rewrap, secretOf } = start();
    await account(opened());
    await withWebhook(PREFIX, old.encryptSecret({ prefix: PREFIX, secret: 'first' }));
    let times = 0;
    const raced = replacing(store, {
      async append(appends) {
        times += 1;
        if (times === 1) await account(webhookSet({ url: 'https://example.com/other', secret: null }));
        if (times === 2) await rewrap(rotated);
        return store.append(appends);
      },
    });
    expect((await rewrap(rotated, {}, raced)).counts).toEqual({ rewrapped: 0, unchanged: 1, unreadable: 0 });
    expect(fresh.decryptSecret(PREFIX, await secretOf(PREFIX))).toBe('first');
    const types = (await store.readStream('account-7')).map(({ type }) => type);
    expect(types.filter((type) => type === 'WebhookSecretRewrapped')).toHaveLength(1);
    expect((await changeAccount(writer, 7, [])).account.keys.get(PREFIX)?.webhook?.url).toMatch(/other$/);
  });

  test('are left as they are once the rewrap is interrupted', async () => {
    const { account, withWebhook, rewrap } = start();
    await account(opened());
    await withWebhook(PREFIX, old.encryptSecret({ prefix: PREFIX, secret: 'first' }));
    const { counts } = await rewrap(rotated, { signal: AbortSignal.abort() });
    expect(counts).toEqual({ rewrapped: 0, unchanged: 0, unreadable: 0 });
  });

  test('are counted by the master key that they need, those of closed accounts too', async () => {
    const { account, append, withWebhook, rewrap, current } = start();
    expect([...(await secretsByMasterKey(await current()))]).toEqual([]);
    await account(opened());
    await withWebhook(PREFIX, old.encryptSecret({ prefix: PREFIX, secret: 'first' }));
    await account(onKey('WebhookRemoved'));
    await withWebhook(other, fresh.encryptSecret({ prefix: other, secret: 'second' }));
    const theirs = { account_id: 8, prefix: 'closed1234' };
    const secret = old.encryptSecret({ prefix: theirs.prefix, secret: 'fourth' });
    await append('account-8', opened('Eight', 8), keyIssued(theirs), webhookSet({ ...theirs, secret }));
    await append('account-8', { type: 'AccountGuessed', data: {} });
    const counts = async () => Object.fromEntries(await secretsByMasterKey(await current()));
    expect(await counts()).toEqual({ [oldId]: 2, [newId]: 1 });
    await rewrap(rotated);
    expect(await counts()).toEqual({ [oldId]: 1, [newId]: 2 });
  });
});
