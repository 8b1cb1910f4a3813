import { describe, expect, test } from 'vitest';
import { type Names, some, unknownName } from '../../../src/operator/answers/names.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';

test('a long list of names is shortened', () => {
  expect(some(['a', 'b'])).toBe('a, b');
  expect(some(['a', 'b', 'c', 'd', 'e', 'f'])).toBe('a, b, c, d, e, …');
});

describe('a name that was never recorded', () => {
  const store = {
    readStream: async () => [],
    isErased: async (stream: string) => stream === 'transaction-5',
  };

  test.each<[Names, string | undefined]>([
    [{}, undefined],
    [{ account: 7, key: PREFIX }, undefined],
    [{ account: 8 }, 'No account 8. See `fuel account list`'],
    [{ key: 'zzzzzzzzzz' }, 'No key zzzzzzzzzz. See `fuel key list`'],
    [{ account: 8, key: PREFIX }, `Key ${PREFIX} belongs to account 7, not to account 8`],
    [{ transaction: 4 }, 'No transaction 4 was ever recorded'],
    [{ transaction: 5 }, undefined],
  ])('of %j is said: %s', async (names, said) => {
    const eight = opened('Eight', 8);
    const rows = await rowsAfter(opened(), keyIssued(), ...(names.key === PREFIX ? [eight] : []));
    expect(await unknownName(names, store, rows)).toBe(said);
  });
});
