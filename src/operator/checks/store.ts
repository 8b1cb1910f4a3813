import { join, resolve } from 'node:path';
import { type Move, USE_THE_OTHER } from '../../accounts/moved-store.ts';
import { assertBinding, ignoredEnvironments } from '../../accounts/store-binding.ts';
import { assertNoUnfinishedCopy } from '../../accounts/unfinished-copy.ts';
import type { Config } from '../../base/config/config.ts';
import type { Coordination } from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { settingsFor } from '../../engines/engines.ts';
import { EMBEDDED_FILES, readThroughSoon } from '../../engines/sqlite/embedded-files.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { damagedEvents } from '../../pull/view/parked-events.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { readStartedLog } from '../../push/delivery-log.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import type { StoreName, StoreState } from '../../service/engines/engines.ts';
import { type Finding, right, some, wrong } from './check.ts';

/** What exists of the stores. */
export interface StoreParts {
  readonly store: EventStore;
  readonly view: Pick<TransactionsView, 'checkpoint' | 'parked'> | undefined;
  readonly embedded: readonly StoreName[];
  readonly queue: Pick<DeliveryQueue, 'logId'> | undefined;
  /** Not merely of another version. */
  readonly isQueueMissing: boolean;
  readonly coordination: Coordination | undefined;
}

/** What is kept beside the event store; none of it comes into being before that. */
const BESIDE = {
  view: 'the view',
  queue: 'the delivery log',
  subscriptions: 'the subscriptions',
  directory: 'the stored accounts',
} as const satisfies Partial<Record<StoreName, string>>;
const LOST_EVENTS =
  'start nothing, which would begin a new store: restore the events from the backup (docs/operations/backup.md, ' +
  `"Backup and restore"); where they are elsewhere, correct FUEL_DATA_DIR or ${settingsFor('store')}`;
const LOST_LOG =
  'restore its backup; where it is lost: fuel verify deliveries --repair --resend-unknown ' +
  '(docs/operations/troubleshooting.md, "The delivery log is lost")';

/** Where there is no event store of this version: it is lost if there is something that was made from it. */
export async function checkMissingStore(
  state: (name: StoreName) => Promise<StoreState>,
  dataDir: string,
): Promise<Finding> {
  const found = await state('store');
  if (found === 'read-only' || found === 'damaged')
    return right('the event store is not looked at: data-directory says why');
  if (found !== 'missing') {
    return right('the event store has another version: data-directory says what happens at the next start');
  }
  const names = Object.keys(BESIDE) as (keyof typeof BESIDE)[];
  const states = await Promise.all(names.map(state));
  const left = names.filter((_, index) => states[index] !== 'missing').map((name) => BESIDE[name]);
  if (left.length === 0) return right('there is no store yet');
  return wrong(
    `${join(resolve(dataDir), EMBEDDED_FILES.events)} is missing, and what was made from it is there: ${left.join(', ')}`,
    LOST_EVENTS,
  );
}

/** Where `fuel store copy` has marked it. */
export function movedStore({ to, at }: Move): Finding {
  return wrong(
    `the embedded store was moved to ${to.join(' and ')} at ${at}: nothing changes it any more`,
    USE_THE_OTHER,
  );
}

/** Whether the stores belong to each other and to this configuration, as a start would check it. */
export async function checkStore(
  { store, view, embedded, queue, isQueueMissing, coordination }: StoreParts,
  config: Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_MASTER_KEY' | 'FUEL_DATA_DIR'>,
): Promise<Finding> {
  const damage = readThroughSoon(config, { embedded })
    ? await damagedEvents(store, () => view ?? { parked: async () => [] })
    : [];
  if (damage.length > 0) {
    const named = some(damage.map(describeDamage));
    return wrong(`${damage.length} damaged events: ${named}`, `${RESTORE_EVENTS}; fuel verify names each`);
  }
  if ((await store.head()) === 0) {
    const made = await view?.checkpoint();
    if (made === undefined) return right('the event store is empty: nothing was recorded yet');
    return wrong(
      `the event store is empty, and the view was made from event store ${made.storeId}`,
      LOST_EVENTS,
    );
  }
  try {
    if (coordination !== undefined) await assertNoUnfinishedCopy(coordination);
    await assertBinding(store, config);
    await assertViewFits(await view?.checkpoint(), store, VIEW_NAME);
    const started = await readStartedLog(store);
    if (started !== undefined && isQueueMissing)
      return wrong(`the delivery log ${started.id} of this event store is missing`, LOST_LOG);
    if (started !== undefined && queue !== undefined && (await queue.logId()).id !== started.id)
      return wrong('the delivery log is not the one of this event store', LOST_LOG);
  } catch (error) {
    if (!(error instanceof FuelError) || !['STORE_MISMATCH', 'REFUSED'].includes(error.code)) throw error;
    return wrong(error.message, 'follow what the message says; nothing is lost meanwhile');
  }
  const belong = `the stores belong to each other and to ${config.FUEL_ENVIRONMENT}`;
  return right([belong, ...(await ignoredEnvironments(store))].join('; '));
}
