import { describe, expect, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { accountLists } from '../../../src/operator/answers/account.ts';
import { keyIssued, onKey, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

describe('the lists of accounts', () => {
  /** Applies events of the samples to an account with one key. */
  const apply = (directory: Directory, accountId: number, ...events: readonly AccountEvent[]): void => {
    const first = (directory.account(accountId)?.revision ?? -1) + 1;
    for (const [at, event] of events.entries()) {
      const data = {
        ...event.data,
        account_id: accountId,
        ...('prefix' in event.data && { prefix: `key${accountId}`.padEnd(10, 'x') }),
      };
      directory.apply({
        position: directory.position + 1,
        stream: `account-${accountId}`,
        revision: first + at,
        decoded: { ok: true, event: { ...event, data } as AccountEvent, atMs: accountId },
      });
    }
  };

  test('are sorted by id, with the webhooks of active keys, and those that are switched off, the latest first', async () => {
    const directory = new Directory();
    for (const id of [9, 7, 8, 11, 10]) apply(directory, id, opened('N'), keyIssued(), webhookSet());
    for (const id of [8, 10]) apply(directory, id, onKey('WebhookDisabled'));
    apply(directory, 9, onKey('KeySwitchedOff'));
    const lists = await accountLists({ directory, environment: 'staging' });
    expect(lists.accounts.map(({ id }) => id)).toEqual([7, 8, 9, 10, 11]);
    expect(lists.webhooks.map(({ accountId }) => accountId)).toEqual([7, 8, 10, 11]);
    expect(lists.disabled.map(({ accountId }) => accountId)).toEqual([10, 8]);
  });

  test('have the webhooks of active keys of this environment, also if they are switched off', async () => {
    const start = [opened(), keyIssued(), webhookSet()];
    const count = async (
      events: readonly AccountEvent[],
      environment: 'staging' | 'production' = 'staging',
    ) => (await accountLists({ directory: directoryOf(...events), environment })).webhooks.length;
    expect(await count(start)).toBe(1);
    expect(await count([...start, onKey('WebhookDisabled')])).toBe(1);
    expect(await count([...start, onKey('KeySwitchedOff')])).toBe(0);
    expect(await count([...start, onKey('WebhookRemoved')])).toBe(0);
    expect(await count(start, 'production')).toBe(0);
  });
});
