import type { Directory } from '../../projections/directory.ts';

/** How many webhook secrets each master key has encrypted, by its id; those of removed webhooks and keys included. */
export function secretsByMasterKey(directory: Pick<Directory, 'accounts'>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { account } of directory.accounts()) {
    for (const { webhookSecret } of account?.keys.values() ?? []) {
      if (webhookSecret === null) continue;
      const { master_key_id: id } = webhookSecret;
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
  }
  return counts;
}
