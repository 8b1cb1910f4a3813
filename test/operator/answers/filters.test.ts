import { describe, expect, test } from 'vitest';
import { readDeliveryFilter } from '../../../src/operator/answers/filters.ts';
import { type NameParts, type Names, unknownName } from '../../../src/operator/answers/names.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { directoryOf } from '../../support/accounts/directory-of.ts';

describe('a filter of deliveries', () => {
  test('is read from text, and what is left out does not filter', () => {
    expect(readDeliveryFilter({ state: 'held', key: PREFIX, since: '2026-09-01T00:00:00Z' })).toMatchObject({
      given: { state: 'held', key: PREFIX },
      filter: {
        state: 'held',
        prefix: PREFIX,
        sinceMs: Date.parse('2026-09-01T00:00:00Z'),
        untilMs: undefined,
        accountId: undefined,
      },
    });
  });

  test('names all of its faults at once, without repeating what may be a secret', () => {
    const read = readDeliveryFilter({ state: 'sent', key: 'svc_live_a_secret', account: '-1', until: 'now' });
    expect(read).toEqual({
      faults: [
        'state: It must be one of pending, held, delivered, failed, withdrawn.',
        'account: It must be an integer from 0 to 2^53-1.',
        expect.stringMatching(/^until: It must be an ISO 8601 date-time/),
        expect.stringMatching(/^a prefix is wanted, the 10 characters/),
      ],
    });
    expect(JSON.stringify(read)).not.toContain('secret');
  });

  test('is refused if nothing can be between its times', () => {
    const range = { since: '2026-09-02T00:00:00Z', until: '2026-09-01T00:00:00Z' };
    expect(readDeliveryFilter(range)).toEqual({
      faults: [expect.stringContaining('nothing can be between them')],
    });
  });
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
    [{ account: 8 }, 'account 8 is not known: fuel account list'],
    [{ key: 'zzzzzzzzzz' }, 'no key has the prefix zzzzzzzzzz: fuel key list shows them all'],
    [{ transaction: 4 }, 'transaction 4 is not known'],
    [{ transaction: 5 }, undefined],
  ])('of %j is said: %s', async (names, said) => {
    expect(await unknownName(names, parts)).toBe(said);
  });

  test('is not an account that something else names, but a key must still be its own', async () => {
    const named = { ...parts, isNamed: async () => true };
    expect(await unknownName({ account: 8 }, named)).toBeUndefined();
    expect(await unknownName({ account: 8, key: PREFIX }, named)).toBe(
      `the key ${PREFIX} is of account 7, not of account 8`,
    );
  });
});
