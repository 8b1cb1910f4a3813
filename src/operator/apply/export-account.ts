import { printableLine } from '../../base/printable.ts';
import type { Account } from '../../domain/account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import { MAX_LINE_BYTES } from '../lines/lines.ts';
import { type DesiredAccount, MAX_DESIRED_EVENTS } from './desired-account.ts';

/** Applying a line records one event for each item, and up to three for its other members. */
const MAX_ITEMS = MAX_DESIRED_EVENTS - 3;

type Lists = {
  [List in 'profiles' | 'groups' | 'corporates']: NonNullable<DesiredAccount[List]>;
};
type ItemOf<List> = List extends (infer T)[] ? T : never;
type Item = { [List in keyof Lists]: readonly [List, ItemOf<Lists[List]>] }[keyof Lists];

/**
 * Yields the account in the format that `fuel account apply` reads. It is one line, unless that would be too long or have too many
 * items: then further lines with the same id continue its lists. Only the contacts of an account can't be divided.
 */
export function* linesOf(account: Account): Generator<DesiredAccount, void> {
  const lists = (): Lists => ({ profiles: [], groups: [], corporates: [] });
  const head = {
    account_id: account.id,
    name: account.name,
    integration: account.integration.enabled ? 'on' : 'off',
    contacts: [...account.emails],
  } satisfies DesiredAccount;
  let line: DesiredAccount & Lists = { ...head, ...lists() };
  let bytes = bytesOf(line);
  let items = 0;
  for (const [list, item] of itemsOf(account)) {
    const itemBytes = bytesOf(item) + 1; // with its comma
    if (items === MAX_ITEMS || bytes + itemBytes > MAX_LINE_BYTES) {
      yield line;
      line = { account_id: account.id, ...lists() };
      bytes = bytesOf(line);
      items = 0;
    }
    const into: unknown[] = line[list];
    into.push(item);
    bytes += itemBytes;
    items += 1;
  }
  yield line;
}

/** The items of the lists. Groups come before the corporates that belong to them. */
function* itemsOf({ profiles, groups, corporates }: Account): Generator<Item> {
  for (const [profile, { fromMs, toMs }] of [...profiles].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const to = dateTimeOrNull(toMs);
    yield ['profiles', { profile, from: formatDateTime(fromMs), to }];
  }
  for (const [id, { name }] of byId(groups)) yield ['groups', { id, name }];
  for (const [id, { name, groupId }] of byId(corporates))
    yield ['corporates', { id, name, group_id: groupId }];
}

function byId<T>(items: ReadonlyMap<number, T>): (readonly [number, T])[] {
  return [...items].sort(([a], [b]) => a - b);
}

/** The length of a line as it is printed. */
export function bytesOf(value: object): number {
  return Buffer.byteLength(printableLine(JSON.stringify(value)));
}
