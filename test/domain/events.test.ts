import { define } from 'superstruct';
import { describe, expect, test } from 'vitest';
import { accountStream, isAccountEventType } from '../../src/domain/account-events.ts';
import { eventTypes, faultsOf } from '../../src/domain/events.ts';
import { isOperationsEventType, OPERATIONS_STREAM } from '../../src/domain/operations-events.ts';
import {
  isTransactionEventType,
  transactionIdOf,
  transactionStream,
} from '../../src/domain/transaction-events.ts';

describe('a stream', () => {
  test('has the name under which stores hold it', () => {
    expect([transactionStream(501), accountStream(7), OPERATIONS_STREAM]).toEqual([
      'transaction-501',
      'account-7',
      'operations',
    ]);
  });

  test('of a transaction names its id', () => {
    for (const id of [0, 501, 2 ** 53 - 1]) expect(transactionIdOf(transactionStream(id))).toBe(id);
  });

  test.each([
    'operations',
    'account-501',
    'transaction-',
    'transaction-x',
    'transaction-0501',
    'transaction-1e3',
    'transaction-1.5',
    'transaction-9007199254740992',
    '501',
  ])('of another name is of no transaction: %s', (stream) => {
    expect(transactionIdOf(stream)).toBeUndefined();
  });
});

test('every type of event belongs in one kind of stream', () => {
  const kinds = [isTransactionEventType, isAccountEventType, isOperationsEventType];
  const kindsOf = (type: string) => kinds.filter((isOf) => isOf(type)).length;
  expect(eventTypes.map(kindsOf)).toEqual(eventTypes.map(() => 1));
  expect(['', 'toString', 'TransactionGuessed'].map(kindsOf)).toEqual([0, 0, 0]);
});

test('a fault of the program is not taken for one of the data', () => {
  const broken = define<never>('broken', () => {
    throw new RangeError('a fault of the program');
  });
  expect(() => faultsOf(broken, {})).toThrow(RangeError);
});
