import { describe, expect, test } from 'vitest';
import { applyToDirectory, readAccountEvent } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';

const recorded = (revision: number, event: object, metadata: unknown = {}): RecordedEvent => ({
  position: 10 + revision,
  stream: 'account-7',
  revision,
  id: `event ${revision}`,
  metadata,
  recordedAtMs: 9_000,
  type: '',
  data: {},
  ...event,
});

describe('a recorded event of an account', () => {
  test('happened when its command ran, which a copy of it keeps, or else when the store took it', () => {
    const atOf = (metadata: unknown) => {
      const read = readAccountEvent(recorded(0, opened(), metadata));
      return read.ok ? read.atMs : read.reason;
    };
    expect(atOf({ at: '1970-01-01T00:00:05.000Z' })).toBe(5_000);
    for (const metadata of [{}, { at: 'yesterday' }, { at: 5_000 }, null]) expect(atOf(metadata)).toBe(9_000);
  });

  test('is of an account’s types, and fits its schema', () => {
    expect(readAccountEvent(recorded(0, opened()))).toMatchObject({ ok: true, event: opened() });
    const reasonOf = (event: object) => {
      const read = readAccountEvent(recorded(0, event));
      return read.ok ? undefined : read.reason;
    };
    const voided = { transaction_id: 1, account_id: 7, voided_at: '2026-09-04T10:00:00Z' };
    expect(reasonOf({ type: 'TransactionVoided', data: voided })).toBe(
      "TransactionVoided does not belong in an account's stream",
    );
    expect(reasonOf({ type: 'AccountOpened', data: { account_id: 7 } })).toMatch(/^name: /);
    expect(reasonOf({ type: 'AccountGuessed', data: {} })).toMatch(/unknown event type/);
  });

  test('changes the directory at its own position and time', () => {
    const directory = new Directory();
    const events = [opened(), keyIssued(), webhookSet(), onKey('WebhookDisabled')];
    for (const [revision, event] of events.entries()) {
      expect(applyToDirectory(directory, recorded(revision, event))).toBeUndefined();
    }
    expect(directory.account(7)).toMatchObject({ revision: 3, position: 13, unreadable: null });
    expect(directory.key(PREFIX)?.key.webhook?.disabled?.sinceMs).toBe(9_000);
    expect(applyToDirectory(directory, recorded(4, { type: 'AccountGuessed' }))).toMatchObject({ id: 7 });
    expect(directory.account(7)?.unreadable).toMatchObject({ position: 14 });
  });
});
