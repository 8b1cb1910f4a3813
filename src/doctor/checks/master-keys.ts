import type { Directory } from '../../../projections/directory.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import { secretsByMasterKey } from '../../accounts/webhook-secrets.ts';
import { type Finding, right, some, wrong } from './check.ts';

/** Which master keys the webhook secrets still need, and which can go. */
export function checkMasterKeys(
  directory: Pick<Directory, 'states'>,
  keys: Pick<MasterKeys, 'ids'> | undefined,
): Finding {
  const given = keys?.ids() ?? [];
  const counts = secretsByMasterKey(directory);
  const missing = [...counts].filter(([id]) => !given.includes(id));
  if (missing.length > 0) {
    return wrong(
      `not given: ${some(missing.map(([id, count]) => `master key ${id} of ${count} webhook secrets`))}`,
      'add it to FUEL_MASTER_KEY, after the first one; where it is lost: fuel store trust-key --reason "…"',
    );
  }
  const [current, ...others] = given.map((id) => ({ id, count: counts.get(id) ?? 0 }));
  if (current === undefined) return right('there is none yet: the first start makes one');
  const uses = [current, ...others].map(({ id, count }) => `${id} encrypts ${count} webhook secrets`);
  const spare = others.filter(({ count }) => count === 0).map(({ id }) => id);
  const needed = others.filter(({ count }) => count > 0).map(({ id }) => id);
  return right(
    uses.join(', ') +
      (spare.length > 0 ? `; can go from FUEL_MASTER_KEY: ${some(spare)}` : '') +
      (needed.length > 0 ? `; needed until fuel key rewrap has run: ${some(needed)}` : ''),
  );
}
