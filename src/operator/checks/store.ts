import { join, resolve } from 'node:path';
import { FuelError } from '../../base/errors.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { settingsFor } from '../../engines/engines.ts';
import { EMBEDDED_FILES } from '../../engines/sqlite/embedded-files.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import { describeDamage, RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import { lastSeal, type Seal } from '../../seals/seals.ts';
import type { StoreName } from '../../service/engines/engines.ts';
import { moveOf, USE_THE_OTHER } from '../../service/stores/moved-store.ts';
import { assertBinding, ignoredEnvironments } from '../../service/stores/store-binding.ts';
import { assertNoUnfinishedCopy } from '../../service/stores/unfinished-copy.ts';
import type { AccountFigures } from '../accounts/account-figures.ts';
import { counted, some } from '../answers/names.ts';
import { act, type Check, type Finding, notice, type Problem, right, wrong } from './check.ts';
import type { Facts } from './facts.ts';
import { checkMasterKeys } from './master-keys.ts';

/** The nightly verification may fail once. */
const PROVEN_WITHIN_MS = 2 * DAY_MS;
const REPAIRED_WITHIN_MS = 2 * DAY_MS;
/** The stores that exist only once there is an event store. */
const MADE_LATER = {
  view: 'the view',
  queue: 'the delivery log',
  subscriptions: 'the subscriptions',
  accounts: 'the rows of accounts',
} as const satisfies Partial<Record<StoreName, string>>;
const LOST_EVENTS =
  'do not start the service, which would begin a new store: restore the events from the backup ' +
  `(docs/operations/backup.md, "Backup and restore"); if they are elsewhere, correct FUEL_DATA_DIR or ${settingsFor('store')}`;
const LOST_LOG =
  'restore its backup; if there is none: fuel verify deliveries --repair --resend-unknown ' +
  '(docs/operations/troubleshooting.md, "The delivery log is lost")';

/** The checks of the event store and of everything that belongs to it. */
export const STORE_CHECKS: readonly Check[] = [
  {
    name: 'store',
    madeBy: 'doctor',
    settings: ['FUEL_MASTER_KEY'],
    stores: 'optional',
    find: checkStore,
  },
  {
    name: 'accounts',
    stores: 'required',
    alerts: ['FuelAccountUnreadable'],
    async find(facts) {
      const { accounts, unreadable } = await facts.accounts();
      if ((await facts.rows()) === undefined)
        return right('not checked: the next start makes the rows of accounts');
      return {
        detail: `${counted(accounts, 'account')}; the events of each can be read`,
        problems: unreadableProblems(unreadable),
      };
    },
  },
  {
    name: 'proof',
    madeBy: 'doctor',
    stores: 'required',
    find: checkProof,
  },
  {
    name: 'master-keys',
    madeBy: 'doctor',
    settings: ['FUEL_MASTER_KEY'],
    stores: 'required',
    find: checkMasterKeys,
  },
  {
    name: 'damage',
    madeBy: 'overview',
    async find(facts) {
      const [first, ...others] = await facts.damage();
      if (first === undefined) return right('');
      const more = others.length === 0 ? '' : `, and ${others.length} more`;
      return wrong(`damaged: ${describeDamage(first)}${more}`, RESTORE_EVENTS, { words: ['verify'] });
    },
  },
  {
    name: 'repairs',
    madeBy: 'overview',
    alerts: ['FuelRepaired'],
    async find({ operations, clock }) {
      const repairs = (await operations()).filter(
        ({ type, atMs }) => type === 'AgreementRepaired' && clock.now() - atMs < REPAIRED_WITHIN_MS,
      );
      const problems = repairs.map(({ data: { repaired, what }, at }, index) => {
        const text = `${repaired} of ${what} differed from the events and were repaired at ${at}`;
        return notice(text, { id: `repair-${index}`, words: ['verify', '--explain'] });
      });
      return { detail: '', problems };
    },
  },
];

function unreadableProblems(unreadable: AccountFigures['unreadable']): Problem[] {
  const [first] = unreadable;
  if (first === undefined) return [];
  const text =
    unreadable.length === 1
      ? `account ${first.id} is not served: ${first.reason}`
      : `${unreadable.length} accounts are not served, because an event of each cannot be read: ${some(unreadable.map(({ id }) => String(id)))}`;
  const remedy =
    `fuel account show ${first.id} says which event and why; if a newer version wrote it, run that version on ` +
    'every process (docs/operations/troubleshooting.md, "One account answers 503 and others do not")';
  const words = ['account', 'show', String(first.id)];
  return [act(text, { id: 'unreadable', words, do: remedy, href: `/accounts/${first.id}` })];
}

/** Checks that the stores belong to each other and to this configuration, as a start does. */
export async function checkStore(facts: Facts): Promise<Finding> {
  const { config, engines, find } = facts;
  const store = await find('store');
  const move = await moveOf({ ...config, ...engines }, store);
  if (move !== undefined) {
    const { to, at } = move;
    return wrong(
      `the embedded store was moved to ${to.join(' and ')} at ${at}: it cannot be changed any more`,
      USE_THE_OTHER,
    );
  }
  if (store === undefined) return missingStore(facts);
  const view = await find('view');
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
    return wrong(error.message, 'do what the message says; nothing is lost in the meantime');
  }
  const { deliveryLog: started } = await operationsOf(store);
  if (started !== undefined && (await engines.state('queue')) === 'missing')
    return wrong(`the delivery log ${started.id} of this event store is missing`, LOST_LOG);
  const log = await (await find('queue'))?.logId();
  if (started !== undefined && log !== undefined && log.id !== started.id)
    return wrong('the delivery log does not belong to this event store', LOST_LOG);
  const belong = `the stores belong to each other and to ${config.FUEL_ENVIRONMENT}`;
  return right([belong, ...(await ignoredEnvironments(store))].join('; '));
}

/** Says why the event store can't be opened. It is lost if something that was made from it is still there. */
async function missingStore({ config, engines }: Facts): Promise<Finding> {
  const found = await engines.state('store');
  if (found === 'read-only' || found === 'damaged')
    return right('the event store was not checked: data-directory says why');
  if (found !== 'missing') {
    return right('the event store has another version: data-directory says what happens at the next start');
  }
  const names = Object.keys(MADE_LATER) as (keyof typeof MADE_LATER)[];
  const states = await Promise.all(names.map((name) => engines.state(name)));
  const left = names.filter((_, index) => states[index] !== 'missing').map((name) => MADE_LATER[name]);
  if (left.length === 0) return right('there is no store yet');
  const events = join(resolve(config.FUEL_DATA_DIR), EMBEDDED_FILES.events);
  return wrong(
    `${events} is missing or empty, but what was made from it is there: ${left.join(', ')}`,
    LOST_EVENTS,
  );
}

/** Reads the newest seal, or returns the error that says why it can't be read. */
async function newestSeal(store: EventStore): Promise<Seal | FuelError | undefined> {
  try {
    return await lastSeal(store);
  } catch (error) {
    if (error instanceof FuelError && error.code === 'REFUSED') return error;
    throw error;
  }
}

/** Checks that what was sealed has been proven lately. Every night does it. */
export async function checkProof({
  store,
  operations,
  clock,
}: Pick<Facts, 'store' | 'operations' | 'clock'>): Promise<Finding> {
  const seal = await newestSeal(await store());
  if (seal instanceof FuelError)
    return wrong(seal.message, 'fuel audit verify, which names the first fault of the log');
  if (seal === undefined)
    return right('nothing is sealed yet; a process with the role projector seals the log');
  const sealed = `${counted(seal.size, 'event')} sealed, the last at ${formatDateTime(occurredAtMs(seal.recorded))}`;
  const proof = (await operations()).find(({ type }) => type === 'LogProven');
  if (proof === undefined) return right(`${sealed}; nothing was proven yet (fuel audit verify)`);
  const size = Number(proof.data.size);
  const detail = `${sealed}; the first ${size} proven at ${proof.at}`;
  const isOld = size < seal.size && clock.now() - proof.atMs > PROVEN_WITHIN_MS;
  return isOld
    ? wrong(detail, 'fuel audit verify; the log of the projector says why the nightly proof failed')
    : right(detail);
}
