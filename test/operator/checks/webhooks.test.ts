import { describe, expect, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { checkContacts, webhooksOf } from '../../../src/operator/checks/accounts.ts';
import { keyIssued, onKey, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

const contacts: AccountEvent = {
  type: 'AccountContactsSet',
  data: { account_id: 7, emails: ['a@example.com'] },
};
const start = [opened(), keyIssued(), webhookSet()];
const all = (...events: readonly AccountEvent[]) => [...webhooksOf(directoryOf(...events), 'staging')];

describe('the webhooks', () => {
  test('that count are those of active keys of this environment, switched off or not', () => {
    expect(all(...start)).toHaveLength(1);
    expect(all(...start, onKey('WebhookDisabled'))).toHaveLength(1);
    expect(all(...start, onKey('KeySwitchedOff'))).toHaveLength(0);
    expect(all(...start, onKey('WebhookRemoved'))).toHaveLength(0);
    expect([...webhooksOf(directoryOf(...start), 'production')]).toHaveLength(0);
  });

  test('that nobody would be told about are wrong', () => {
    expect(checkContacts(all(...start), undefined)).toEqual({
      ok: false,
      detail: 'nobody would be told about the webhooks of 1 accounts: 7',
      do: 'fuel account contact 7 --email ADDRESS, for each of them; or set FUEL_OPERATOR_EMAIL',
    });
    expect(checkContacts(all(...start), 'operator@example.com')).toMatchObject({ ok: true });
    expect(checkContacts(all(...start, contacts), undefined)).toMatchObject({ ok: true });
    expect(checkContacts([], undefined)).toMatchObject({ ok: true });
  });
});
