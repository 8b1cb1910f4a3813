import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { world } from '../../../src/base/world.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { accountFigures, accountsWithoutContact } from '../../../src/operator/accounts/account-figures.ts';
import { checkContacts } from '../../../src/operator/checks/accounts.ts';
import { factReads } from '../../../src/operator/checks/facts.ts';
import {
  keyIssued,
  onKey,
  opened,
  PREFIX,
  profileSet,
  webhookSet,
} from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import { factsWith, NOW_MS, said } from '../../support/checks/facts.ts';

const STREAK = { prefix: PREFIX, failedInARow: 4, failingSinceMs: NOW_MS, lastAnswers: ['503'] };

describe('webhooks', () => {
  const start = [opened(), keyIssued(), webhookSet()];
  const ENABLED = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;
  const contacts: AccountEvent = {
    type: 'AccountContactsSet',
    data: { account_id: 7, emails: ['a@example.com'] },
  };

  test('are wrong if nobody is notified of them', async () => {
    const check = async (events: readonly AccountEvent[], email?: string) => {
      const rows = await rowsAfter(...events);
      const { webhooks } = await accountFigures(rows);
      return said(checkContacts(webhooks, email ?? (await accountsWithoutContact(rows))));
    };
    expect(await check(start)).toEqual({
      ok: false,
      detail: 'nobody is notified of failing webhooks of 1 account: 7',
      do: 'fuel account contact 7 --email ADDRESS, and so on for each account; or set FUEL_OPERATOR_EMAIL',
    });
    expect(await check(start, 'operator@example.com')).toMatchObject({ ok: true });
    expect(await check([...start, contacts])).toMatchObject({ ok: true });
    expect(await check([])).toMatchObject({ ok: true });
  });

  test('are stuck for doctor if the second look finds the same delivery, which nobody has attempted', async () => {
    const lane = { prefix: PREFIX, transactionId: 1, dueAtMs: NOW_MS - 301_000 };
    const stuck = async (second: object) => {
      let looks = 0;
      const sleep = vi.spyOn(world, 'sleep').mockResolvedValue(undefined);
      onTestFinished(() => sleep.mockRestore());
      const queue = {
        dueLanes: async () => ({ lanes: [{ ...lane, ...(looks++ === 0 ? {} : second) }], isAll: true }),
        askedToWaitUntil: async () => undefined,
      };
      const found = await rowsAfter(...start, ENABLED, profileSet('2026-01-01T00:00:00Z', null));
      const rows = async () => found;
      const config = { FUEL_ENVIRONMENT: 'staging' } as never;
      return factReads({ ...factsWith(), config, find: async () => queue as never, rows }).stuck();
    };
    expect(await stuck({})).toMatchObject([{ prefix: PREFIX, sinceMs: lane.dueAtMs }]);
    expect(await stuck({ transactionId: 2 })).toEqual([]);
    expect(await stuck({ dueAtMs: lane.dueAtMs + 5_000 })).toEqual([]);
  });

  test('that fail are a problem unless they are switched off already', async () => {
    const failing = async (...events: readonly AccountEvent[]) => {
      const rows = await rowsAfter(...events);
      const queue = { failingLanes: async () => [STREAK] };
      const find = async () => queue as never;
      return factReads({ ...factsWith(), find, rows: async () => rows }).failing();
    };
    expect(await failing(...start)).toEqual([STREAK]);
    expect(await failing(...start, onKey('WebhookDisabled'))).toEqual([]);
    expect(await failing()).toEqual([]);
  });
});
