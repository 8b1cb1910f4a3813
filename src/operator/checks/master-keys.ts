import { findMasterKeys, type MasterKeyIdentity, otherKeyFile } from '../../accounts/master-key.ts';
import type { RecordedMasterKey } from '../../event-store/operations.ts';
import { mayHaveHad, recordedMasterKeys } from '../../service/stores/store-binding.ts';
import { counted, some } from '../answers/names.ts';
import { secretsByMasterKey } from '../keys/webhook-secrets.ts';
import { type Finding, right, wrong } from './check.ts';
import type { Facts } from './facts.ts';

/** Checks that no master key is missing which webhook secrets need, and names those that can be removed. */
export async function checkMasterKeys({ config, store, rows }: Facts): Promise<Finding> {
  const accounts = await rows();
  if (accounts === undefined) return right('not checked: the next start makes the rows of accounts');
  const counts = await secretsByMasterKey(accounts);
  return judgeMasterKeys(counts, findMasterKeys(config)?.identities() ?? [], {
    recorded: await recordedMasterKeys(await store()),
    otherFile: otherKeyFile(config),
  });
}

/**
 * Judges by the number of webhook secrets of each master key. A key that encrypts nothing can be removed if it is older
 * than the first, and is about to become the first if it is newer. `recorded` are the keys of the store in their order.
 * `otherFile` is a `master.key` whose key is not given, which a process without FUEL_MASTER_KEY would use.
 */
export function judgeMasterKeys(
  counts: ReadonlyMap<string, number>,
  given: readonly MasterKeyIdentity[],
  known: { readonly recorded: readonly RecordedMasterKey[]; readonly otherFile: string | undefined },
): Finding {
  const { recorded, otherFile } = known;
  const missing = [...counts].filter(([id]) => !given.some(({ master_key_id }) => master_key_id === id));
  const named = (keys: typeof missing): string =>
    some(keys.map(([id, count]) => `master key ${id}, which encrypts ${counted(count, 'webhook secret')}`));
  const ours = missing.filter(([id]) => mayHaveHad(recorded, id));
  if (ours.length > 0) {
    return wrong(
      `FUEL_MASTER_KEY lacks ${named(ours)}`,
      'add it to FUEL_MASTER_KEY, after the first one; if it is lost: fuel store trust-key --reason "…"',
    );
  }
  if (missing.length > 0) {
    return wrong(
      `this store never had ${named(missing)}`,
      'issue new keys to these customers: their webhooks cannot be signed',
    );
  }
  const ageOf = (fingerprint: string): number => {
    const at = recorded.findIndex((known) => known.fingerprint === fingerprint);
    return at === -1 ? recorded.length : at;
  };
  const ages = given.map(({ fingerprint }) => ageOf(fingerprint));
  const [current, ...others] = given.map(({ master_key_id: id }, index) => ({
    id,
    count: counts.get(id) ?? 0,
    isNewer: (ages[index] ?? 0) > (ages[0] ?? 0),
  }));
  if (current === undefined) return right('there is no master key yet: the first start makes one');
  const uses = [current, ...others].map(
    ({ id, count }) => `${id} encrypts ${counted(count, 'webhook secret')}`,
  );
  const next = others.filter(({ isNewer }) => isNewer).map(({ id }) => id);
  const spare = others.filter(({ count, isNewer }) => count === 0 && !isNewer).map(({ id }) => id);
  const needed = others.filter(({ count }) => count > 0).map(({ id }) => id);
  const detail =
    uses.join(', ') +
    (next.length > 0
      ? `; newer than the first, and about to become the first in a rotation: ${some(next)}`
      : '') +
    (spare.length > 0 ? `; can be removed from FUEL_MASTER_KEY: ${some(spare)}` : '') +
    (needed.length > 0 ? `; needed until fuel key rewrap has run: ${some(needed)}` : '');
  if (otherFile === undefined) return right(detail);
  return wrong(
    `${otherFile} holds a key that FUEL_MASTER_KEY does not have: a process without FUEL_MASTER_KEY would encrypt with it; ${detail}`,
    `move ${otherFile} to where you keep secrets, since older backups may need it (docs/operations/secrets.md)`,
  );
}
