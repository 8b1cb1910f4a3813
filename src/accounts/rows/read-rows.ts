import type { Tables } from '../../tables/tables.ts';
import type { AccessRows } from '../caller.ts';
import { accessIn, keyIn } from './rows-of.ts';
import { KEYS, MEMBERS, type MemberKind, memberId } from './tables.ts';

/** Reads what a request needs: the row of its key, and the rows of the corporates and groups that it names. */
export function accessRows(tables: Pick<Tables, 'get'>): AccessRows {
  return {
    async key(prefix) {
      const [row] = await tables.get(KEYS, [prefix], ['account_id', 'settings', 'access', 'unreadable']);
      if (row === undefined) return undefined;
      const { account_id: accountId, unreadable, access } = row;
      return { accountId, unreadable, key: keyIn(row), access: accessIn(access) };
    },
    async members(accountId, { groups, corporates }) {
      const named = [
        ...groups.map((number) => memberId(accountId, 'group', number)),
        ...corporates.map((number) => memberId(accountId, 'corporate', number)),
      ];
      const rows = await tables.get(MEMBERS, named, ['kind', 'number', 'group_id']);
      const ofKind = (kind: MemberKind) => rows.filter((row) => row.kind === kind);
      return {
        groups: new Set(ofKind('group').map(({ number }) => number)),
        corporates: new Map(ofKind('corporate').map(({ number, group_id }) => [number, group_id])),
      };
    },
  };
}
