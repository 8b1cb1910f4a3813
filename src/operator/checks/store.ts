import { join, resolve } from 'node:path';
import { moveOf, USE_THE_OTHER } from '../../accounts/moved-store.ts';
import { assertBinding, ignoredEnvironments } from '../../accounts/store-binding.ts';
import { assertNoUnfinishedCopy } from '../../accounts/unfinished-copy.ts';
import { FuelError } from '../../base/errors.ts';
import { settingsFor } from '../../engines/engines.ts';
import { EMBEDDED_FILES, readThroughSoon } from '../../engines/sqlite/embedded-files.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { damagedEvents } from '../../pull/view/parked-events.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import { readStartedLog } from '../../push/delivery-log.ts';
import type { StoreName } from '../../service/engines/engines.ts';
import { some } from '../answers/names.ts';
import { type Finding, right, wrong } from './check.ts';
import type { Stores } from './stores.ts';

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

/** Whether the stores belong to each other and to this configuration, as a start would check it. */
export async function checkStore(stores: Pick<Stores, 'config' | 'engines' | 'find'>): Promise<Finding> {
  const { config, engines, find } = stores;
  const store = await find('store');
  const move = await moveOf({ ...config, ...engines }, store);
  if (move !== undefined) {
    const { to, at } = move;
    return wrong(
      `the embedded store was moved to ${to.join(' and ')} at ${at}: nothing changes it any more`,
      USE_THE_OTHER,
    );
  }
  if (store === undefined) return missingStore(stores);
  const view = await find('view');
  const damage = readThroughSoon(config, engines)
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
    const coordination = await find('coordination');
    if (coordination !== undefined) await assertNoUnfinishedCopy(coordination);
    await assertBinding(store, config);
    await assertViewFits(await view?.checkpoint(), store, VIEW_NAME);
  } catch (error) {
    if (!(error instanceof FuelError) || !['STORE_MISMATCH', 'REFUSED'].includes(error.code)) throw error;
    return wrong(error.message, 'follow what the message says; nothing is lost meanwhile');
  }
  const started = await readStartedLog(store);
  if (started !== undefined && (await engines.state('queue')) === 'missing')
    return wrong(`the delivery log ${started.id} of this event store is missing`, LOST_LOG);
  const log = await (await find('queue'))?.logId();
  if (started !== undefined && log !== undefined && log.id !== started.id)
    return wrong('the delivery log is not the one of this event store', LOST_LOG);
  const belong = `the stores belong to each other and to ${config.FUEL_ENVIRONMENT}`;
  return right([belong, ...(await ignoredEnvironments(store))].join('; '));
}

/** Where there is no event store of this version: it is lost if there is something that was made from it. */
async function missingStore({ config, engines }: Pick<Stores, 'config' | 'engines'>): Promise<Finding> {
  const found = await engines.state('store');
  if (found === 'read-only' || found === 'damaged')
    return right('the event store is not looked at: data-directory says why');
  if (found !== 'missing') {
    return right('the event store has another version: data-directory says what happens at the next start');
  }
  const names = Object.keys(BESIDE) as (keyof typeof BESIDE)[];
  const states = await Promise.all(names.map((name) => engines.state(name)));
  const left = names.filter((_, index) => states[index] !== 'missing').map((name) => BESIDE[name]);
  if (left.length === 0) return right('there is no store yet');
  const events = join(resolve(config.FUEL_DATA_DIR), EMBEDDED_FILES.events);
  return wrong(
    `${events} is missing or empty, and what was made from it is there: ${left.join(', ')}`,
    LOST_EVENTS,
  );
}
