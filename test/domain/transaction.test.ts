import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decideTransaction,
  evolveTransaction,
  judgeTransaction,
  NO_TRANSACTION,
} from '../../src/domain/transaction.ts';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import { sameJson } from '../../src/domain/values/same-json.ts';
import { recordsThatDifferInOneField } from '../support/transactions/record-fields.ts';
import { confirmedData, externalData } from '../support/transactions/records.ts';

const confirmed = (overrides = {}): TransactionEvent =>
  ({ type: 'TransactionConfirmed', data: confirmedData(overrides) }) as TransactionEvent;
const external = { type: 'ExternalTransactionRecorded', data: externalData() } as TransactionEvent;
const withdrawal = { transaction_id: 501, account_id: 7, reason: null };
const AT = '2026-09-04T10:00:00.000Z';
const voided: TransactionEvent = { type: 'TransactionVoided', data: { ...withdrawal, voided_at: AT } };
const cancelled: TransactionEvent = {
  type: 'TransactionCancelled',
  data: { ...withdrawal, cancelled_at: AT },
};
const stateAfter = (...events: readonly TransactionEvent[]) =>
  events.reduce(evolveTransaction, NO_TRANSACTION);
const refused = (reason: RegExp) => ({ kind: 'refused', reason: expect.stringMatching(reason) });

describe('a transaction', () => {
  test.each([confirmed(), external])('is recorded first', (event) => {
    expect(decideTransaction(event, NO_TRANSACTION)).toEqual({ kind: 'events', events: [event] });
  });

  test.each([voided, cancelled])('is withdrawn after it was recorded, once', (event) => {
    expect(decideTransaction(event, NO_TRANSACTION)).toEqual(refused(/never recorded/));
    expect(decideTransaction(event, stateAfter(confirmed()))).toEqual({ kind: 'events', events: [event] });
  });

  test('is refused a second withdrawal of another kind or content', () => {
    expect(decideTransaction(cancelled, stateAfter(confirmed(), voided))).toEqual(
      refused(/was voided already/),
    );
    expect(decideTransaction(voided, stateAfter(external, cancelled))).toEqual(
      refused(/was cancelled already/),
    );
    const otherReason = { ...voided, data: { ...voided.data, reason: 'fraud' } } as TransactionEvent;
    expect(decideTransaction(otherReason, stateAfter(confirmed(), voided))).toEqual(
      refused(/was voided already/),
    );
  });

  test('is not redacted by a command, but by an event of its stream', () => {
    const redacted = confirmed({ driver: { id: 77, name: 'REDACTED', mobile_number: null } });
    expect(decideTransaction(redacted, stateAfter(confirmed()))).toEqual(refused(/recorded before/));
    expect(stateAfter(confirmed(), redacted)).toEqual({ kind: 'recorded', recording: redacted });
    expect(judgeTransaction(stateAfter(confirmed(), voided), redacted)).toEqual({ kind: 'unchanged' });
  });

  test('is withdrawn by its own account only', () => {
    const foreign = { ...voided, data: { ...voided.data, account_id: 8 } } as TransactionEvent;
    expect(decideTransaction(foreign, stateAfter(confirmed()))).toEqual(
      refused(/belongs to account 7, not 8/),
    );
  });

  test('recorded again with the same content is unchanged, also after its withdrawal', () => {
    const reversed = Object.fromEntries(Object.entries(confirmedData()).reverse());
    const again = { type: 'TransactionConfirmed', data: reversed } as TransactionEvent;
    for (const state of [stateAfter(confirmed()), stateAfter(confirmed(), voided)]) {
      expect(decideTransaction(again, state)).toEqual({ kind: 'unchanged' });
    }
    expect(decideTransaction(voided, stateAfter(confirmed(), voided))).toEqual({ kind: 'unchanged' });
  });

  test('recorded again with any other content is refused, unknown fields included', () => {
    const others = [confirmed({ odometer_reading: 1 }), confirmed({ unknown: 1 }), external];
    for (const other of others) {
      expect(decideTransaction(other, stateAfter(confirmed()))).toEqual(refused(/recorded before/));
    }
    expect(decideTransaction(external, stateAfter(confirmed()))).toEqual(
      refused(/with other content: a record never changes, so give a new transaction a new id$/),
    );
    expect(decideTransaction(external, stateAfter(confirmed(), voided))).toEqual(
      refused(/was voided, .*final/),
    );
  });

  test.each(recordsThatDifferInOneField())(
    'recorded again with another $field is refused, also after its withdrawal',
    ({ data }) => {
      const other = { type: 'TransactionConfirmed', data } as TransactionEvent;
      expect(decideTransaction(other, stateAfter(confirmed()))).toEqual(refused(/recorded before/));
      expect(decideTransaction(other, stateAfter(confirmed(), voided))).toEqual(
        refused(/was voided, .*final/),
      );
    },
  );

  test('is what its first recording and its first withdrawal say', () => {
    expect(stateAfter(confirmed())).toEqual({ kind: 'recorded', recording: confirmed() });
    expect(stateAfter(confirmed(), voided)).toEqual({
      kind: 'withdrawn',
      recording: confirmed(),
      withdrawal: voided,
    });
    expect(stateAfter(voided)).toEqual({ kind: 'withdrawn', recording: undefined, withdrawal: voided });
  });

  test('is not changed by an event that should not be in its stream', () => {
    const foreign = { ...voided, data: { ...voided.data, account_id: 8 } } as TransactionEvent;
    expect(stateAfter(confirmed(), external)).toEqual(stateAfter(confirmed()));
    expect(stateAfter(confirmed(), foreign)).toEqual(stateAfter(confirmed()));
    expect(stateAfter(confirmed(), voided, cancelled)).toEqual(stateAfter(confirmed(), voided));
  });

  test('withdrawn before anything else is never recorded', () => {
    expect(decideTransaction(confirmed(), stateAfter(voided))).toEqual(refused(/was voided/));
  });
});

describe('two JSON values', () => {
  const json = fc.json({ maxDepth: 3 }).map((text): unknown => JSON.parse(text));

  test('are the same in any order of members', () => {
    fc.assert(fc.property(json, (value) => sameJson(value, reversed(value))));
  });

  test('are the same exactly when Node finds them deeply equal', () => {
    const agrees = (one: unknown, other: unknown) => {
      expect(sameJson(one, other)).toBe(isDeepStrictEqual(one, other));
    };
    fc.assert(fc.property(json, json, agrees));
  });

  test('of different kinds differ, empty ones and those with the same members too', () => {
    const values = [
      null,
      true,
      false,
      0,
      1,
      '',
      'x',
      [],
      ['x'],
      [null],
      {},
      { 0: 'x' },
      { a: null },
      { b: null },
    ];
    for (const one of values) {
      for (const other of values) {
        expect([one, other, sameJson(one, other)]).toEqual([one, other, isDeepStrictEqual(one, other)]);
      }
    }
  });

  test('differ where a member of one is missing in the other', () => {
    expect(sameJson({ a: undefined }, { b: undefined })).toBe(false);
    expect(sameJson({ toString: 1 }, {})).toBe(false);
    expect(sameJson([], {})).toBe(false);
    expect(sameJson([1], [1, 2])).toBe(false);
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  );
}
