import fc from 'fast-check';
import type { DesiredAccount } from '../../../src/operator/apply/desired-account.ts';

const name = fc.constantFrom('North', 'South', 'Öst "x"\u009b\u202e\n');
const smallId = fc.integer({ min: 0, max: 3 });
const from = fc.constantFrom('2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00+02:00');
const to = fc.constantFrom('2027-01-01T00:00:00.000Z', null);

/** Desired states of account 7 with any members left out. Some corporates are in groups that do not exist. */
export const desiredAccounts: fc.Arbitrary<DesiredAccount> = fc
  .record(
    {
      name,
      integration: fc.constantFrom('on' as const, 'off' as const),
      contacts: fc.subarray(['a@example.com', 'b@example.com']),
      profiles: fc.uniqueArray(
        fc.record({ profile: name, from, to }, { requiredKeys: ['profile', 'from'] }),
        { selector: ({ profile }) => profile, maxLength: 3 },
      ),
      groups: fc.uniqueArray(fc.record({ id: smallId, name }), { selector: ({ id }) => id, maxLength: 4 }),
      corporates: fc.uniqueArray(
        fc.record({ id: smallId, name, group_id: fc.option(smallId) }, { requiredKeys: ['id', 'name'] }),
        { selector: ({ id }) => id, maxLength: 4 },
      ),
    },
    { requiredKeys: [] },
  )
  .map((members) => ({ account_id: 7, ...members }));
