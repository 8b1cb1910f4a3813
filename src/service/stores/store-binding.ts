import {
  findMasterKeys,
  type MasterKeyIdentity,
  type MasterKeys,
  openMasterKeys,
} from '../../accounts/master-key.ts';
import { everySecret, masterKeysInUse } from '../../accounts/rows/stored-account.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { OPERATIONS_STREAM, type OperationsEvent } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type Author, newEvent } from '../../event-store/new-event.ts';
import {
  type OperationsState,
  operationsOf,
  type RecordedMasterKey,
  recordOperations,
} from '../../event-store/operations.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import type { Tables } from '../../tables/tables.ts';

/** A message names at most this many keys with unreadable secrets. */
const MAX_NAMED = 5;
const AUTHOR: Author = { actor: 'system', command: 'store open' };

type BindingConfig = Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_MASTER_KEY' | 'FUEL_DATA_DIR'>;

/**
 * Checks that this configuration belongs to the store before anything is recorded: it must have the same environment
 * and one of the store's master keys, else it rejects with `STORE_MISMATCH`. The first start records both, and a
 * further key is recorded when it is first given. A process that neither writes nor reads secrets (`withoutSecrets`)
 * needs no master key. Returns the store's id.
 */
export async function bindStore(
  store: EventStore,
  config: BindingConfig,
  { clock, withoutSecrets = false }: { readonly clock: Clock; readonly withoutSecrets?: boolean },
): Promise<string> {
  const storeId = await storeIdentity(store, clock);
  const needsKey = !withoutSecrets || config.FUEL_MASTER_KEY !== undefined;
  for (;;) {
    const binding = await operationsOf(store);
    if (needsKey) assertBound(binding, config);
    else assertEnvironment(binding, config);
    const missing = missingOf(binding, config, needsKey ? openMasterKeys(config).identities() : []);
    if (missing.length === 0) return storeId;
    const events = missing.map((event) => newEvent(event, AUTHOR, clock.now()));
    const expected = binding.revision ?? 'none'; // if several processes start at once, only one records it
    await store.append([{ stream: OPERATIONS_STREAM, expected, events }]);
  }
}

/** Does the same checks as `bindStore`, but records nothing. */
export async function assertBinding(store: EventStore, config: BindingConfig): Promise<void> {
  assertBound(await operationsOf(store), config);
}

/** Describes each event that was appended to move the store to another environment. Such events have no effect. */
export async function ignoredEnvironments(store: EventStore): Promise<string[]> {
  const { ignoredEnvironments } = await operationsOf(store);
  return ignoredEnvironments.map(
    (revision) => `event ${revision} of ${OPERATIONS_STREAM} sets another environment: it is ignored`,
  );
}

/** The store's master keys, in the order in which they were recorded. */
export async function recordedMasterKeys(store: EventStore): Promise<RecordedMasterKey[]> {
  return [...(await operationsOf(store)).masterKeys.values()];
}

/** True if the store may have had this master key: it is one of the recorded keys, or no key is recorded at all. */
export function mayHaveHad(recorded: readonly RecordedMasterKey[], masterKeyId: string): boolean {
  return recorded.length === 0 || recorded.some(({ id }) => id === masterKeyId);
}

/**
 * Records the current master key as one of the store's, after the former one was lost. Rejects with `STORE_MISMATCH` in
 * another environment.
 */
export async function trustMasterKey(
  store: EventStore,
  config: BindingConfig,
  how: { readonly author: Author; readonly reason: string; readonly clock: Clock },
): Promise<MasterKeyIdentity> {
  await storeIdentity(store, how.clock);
  assertEnvironment(await operationsOf(store), config);
  const [key] = openMasterKeys(config).identities();
  if (key === undefined) throw new Error('there is a first master key');
  await recordOperations(store, [{ type: 'MasterKeyAdded', data: { ...key, reason: how.reason } }], how);
  return key;
}

/**
 * Checks that every webhook's secret can be read with these master keys before a delivery is attempted, since each one
 * would fail otherwise. Rejects with `SECRET_UNREADABLE` if a master key of this store is missing. It only logs an
 * error once `fuel store trust-key` has recorded a loss, or if the store never had that master key: then just the
 * customer's key that names it is affected.
 */
export async function assertSecretsReadable(
  store: EventStore,
  accounts: Pick<Tables, 'find' | 'firsts'>,
  { masterKeys, log }: { readonly masterKeys: MasterKeys; readonly log: Log },
): Promise<void> {
  const unreadable = await unreadableSecrets(accounts, masterKeys);
  if (unreadable.size === 0) return;
  const { masterKeys: recorded, hasLostKey } = await operationsOf(store);
  for (const [masterKeyId, prefixes] of unreadable) {
    const named = prefixes.slice(0, MAX_NAMED).join(', ') + (prefixes.length > MAX_NAMED ? ', …' : '');
    const what = `the webhook secrets of ${prefixes.length} keys (${named}) name master key ${masterKeyId}`;
    const isOurs = mayHaveHad([...recorded.values()], masterKeyId);
    if (isOurs && !hasLostKey) {
      throw new FuelError(
        'SECRET_UNREADABLE',
        `${what}, which is not in FUEL_MASTER_KEY. Add it there, after the first one`,
      );
    }
    const why = isOurs ? 'which was said to be lost' : 'which this store never had';
    log.error({ keys: prefixes.length }, `${what}, ${why}: issue new keys to these customers`);
  }
}

/** Returns the prefixes of keys whose webhooks can't be signed for, by the id of the missing master key. */
async function unreadableSecrets(
  accounts: Pick<Tables, 'find' | 'firsts'>,
  masterKeys: MasterKeys,
): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const id of await masterKeysInUse(accounts)) {
    if (masterKeys.has(id)) continue;
    const prefixes: string[] = [];
    for await (const { prefix, webhook } of everySecret(accounts, id))
      if (webhook !== null) prefixes.push(prefix);
    if (prefixes.length > 0) found.set(id, prefixes);
  }
  return found;
}

function assertBound(binding: OperationsState, config: BindingConfig): void {
  assertEnvironment(binding, config);
  if (binding.masterKeys.size === 0) return;
  const keys = findMasterKeys(config)?.identities();
  if (keys?.some(({ fingerprint }) => binding.masterKeys.has(fingerprint))) return;
  const known = [...binding.masterKeys.values()].map(({ id }) => id).join(', ');
  const given = keys?.map(({ master_key_id }) => master_key_id).join(', ');
  const found = given === undefined ? 'none is given' : `the one given is ${given}`;
  throw new FuelError(
    'STORE_MISMATCH',
    `the store's master key is ${known}, and ${found}. Restore ${config.FUEL_DATA_DIR}/master.key ` +
      'or put the key into FUEL_MASTER_KEY. If it is lost for good, `fuel store trust-key` accepts a new one: then ' +
      'webhook secrets cannot be read any more, and customers with a webhook need new keys',
  );
}

function assertEnvironment(
  { environment }: OperationsState,
  { FUEL_ENVIRONMENT: given }: BindingConfig,
): void {
  if (environment === undefined || environment === given) return;
  throw new FuelError(
    'STORE_MISMATCH',
    `the store belongs to ${environment}, and FUEL_ENVIRONMENT is ${given}. Set it to ${environment}, or name ` +
      'another store (FUEL_DATA_DIR, or the setting of its engine)',
  );
}

function missingOf(
  binding: OperationsState,
  { FUEL_ENVIRONMENT: environment }: BindingConfig,
  given: readonly MasterKeyIdentity[],
): OperationsEvent[] {
  const added = given.filter(({ fingerprint }) => !binding.masterKeys.has(fingerprint));
  return [
    ...(binding.environment === undefined
      ? [{ type: 'EnvironmentSet', data: { environment } } as const]
      : []),
    ...added.map((key) => ({ type: 'MasterKeyAdded', data: { ...key, reason: null } }) as const),
  ];
}
