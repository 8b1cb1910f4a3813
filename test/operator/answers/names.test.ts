import { describe, expect, test } from 'vitest';
import { type NameParts, type Names, some, unknownName } from '../../../src/operator/answers/names.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

test('a long list of names is shortened', () => {
  expect(some(['a', 'b'])).toBe('a, b');
  expect(some(['a', 'b', 'c', 'd', 'e', 'f'])).toBe('a, b, c, d, e, …');
});

describe('a name that was never recorded', () => {
  const directory = directoryOf(opened(), keyIssued());
  const parts: NameParts = {
    store: { readStream: async () => [], isErased: async (stream) => stream === 'transaction-5' },
    accountOf: (id) => directory.account(id),
    ownerOf: (prefix) => directory.key(prefix)?.entry.id,
  };

  test.each<[Names, string | undefined]>([
    [{}, undefined],
    [{ account: 7, key: PREFIX }, undefined],
    [{ account: 8 }, 'No account 8. See `fuel account list`'],
    [{ key: 'zzzzzzzzzz' }, 'No key zzzzzzzzzz. See `fuel key list`'],
    [{ transaction: 4 }, 'No transaction 4 was ever recorded'],
    [{ transaction: 5 }, undefined],
  ])('of %j is said: %s', async (names, said) => {
    expect(await unknownName(names, parts)).toBe(said);
  });

  test('is not an account that something else names, but a key must still be its own', async () => {
    const named = { ...parts, isNamed: async () => true };
    expect(await unknownName({ account: 8 }, named)).toBeUndefined();
    expect(await unknownName({ account: 8, key: PREFIX }, named)).toBe(
      `Key ${PREFIX} belongs to account 7, not to account 8`,
    );
  });
});
