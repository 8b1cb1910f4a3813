import fc from 'fast-check';
import type { AccountCommand } from '../../../src/domain/account-commands.ts';
import { REWRAPPED, SECRET } from './account-samples.ts';

const accountId = fc.constant(7);
const name = fc.constantFrom('North', 'South', 'Öst', '');
const smallId = fc.integer({ min: 0, max: 3 });
const key = { accountId, prefix: fc.constantFrom('aaaaaaaaaa', 'bbbbbbbbbb') };
const allowList = fc.subarray(['203.0.113.7', '2001:db8::/32']);
const rateLimit = fc.integer({ min: 0, max: 3 });
const timeMs = fc.integer({ min: 0, max: 5 }).map((days) => days * 86_400_000);
const type = <T extends string>(...types: T[]) => fc.constantFrom(...types);

const command: fc.Arbitrary<AccountCommand> = fc.oneof(
  fc.record({ type: type('OpenAccount', 'RenameAccount'), accountId, name }),
  fc.record({ type: type('CloseAccount', 'ReopenAccount'), accountId, reason: name }),
  fc.record({
    type: type('SetContacts'),
    accountId,
    emails: fc.subarray(['a@example.com', 'b@example.com']),
  }),
  fc.record({ type: type('EnableIntegration', 'DisableIntegration'), accountId }),
  fc.record({
    type: type('SetChargingProfile'),
    accountId,
    profile: name,
    fromMs: timeMs,
    toMs: fc.option(timeMs),
  }),
  fc.record({ type: type('SetCorporateGroup'), accountId, groupId: smallId, name }),
  fc.record({
    type: type('SetCorporate'),
    accountId,
    corporateId: smallId,
    name,
    groupId: fc.oneof(smallId, fc.constant(null), fc.constant(undefined)),
  }),
  fc.record({
    type: type('IssueKey'),
    ...key,
    environment: fc.constantFrom('production' as const, 'staging' as const),
    label: fc.option(name),
    secretSha256: fc.constant('00'.repeat(32)),
    allowList,
    rateLimit,
    driverMobile: fc.boolean(),
  }),
  fc.record({ type: type('SwitchKeyOff', 'SwitchKeyOn', 'RemoveWebhook'), ...key }),
  fc.record({ type: type('SetKeyAllowList'), ...key, allowList }),
  fc.record({ type: type('SetKeyRateLimit'), ...key, rateLimit }),
  fc.record({ type: type('SetKeyDriverMobile'), ...key, enabled: fc.boolean() }),
  fc.record({
    type: type('SetWebhookUrl'),
    ...key,
    url: fc.constantFrom('https://example.com/a', 'https://example.com/b'),
    atMs: timeMs,
    newSecret: fc.constant(SECRET),
  }),
  fc.record({ type: type('SetWebhookRate'), ...key, perSecond: fc.option(fc.integer({ min: 0, max: 2 })) }),
  fc.record({
    type: type('RewrapWebhookSecret'),
    ...key,
    secret: fc.constantFrom(SECRET, REWRAPPED),
  }),
);

/** Commands on account 7, which is open in most of them. */
export const commandSequences: fc.Arbitrary<AccountCommand[]> = fc
  .tuple(fc.boolean(), fc.array(command, { maxLength: 60, size: 'max' }))
  .map(([isOpen, commands]) =>
    isOpen ? [{ type: 'OpenAccount', accountId: 7, name: 'North' }, ...commands] : commands,
  );
