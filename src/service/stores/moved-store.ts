import { existsSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { type Move, operationsOf, recordOperations } from '../../event-store/operations.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';

const FILE = 'moved.json';
/** The advice in errors about a moved store. */
export const USE_THE_OTHER =
  'set the settings of the engines to those (docs/operations/engines.md); to use it here again, while nothing uses ' +
  'the other: fuel store unmark --reason …';

/** The parts needed to mark an embedded store as moved, or to remove the mark. */
export interface MarkOptions {
  readonly folder: string;
  readonly store: Pick<EventStore, 'readStream' | 'append'>;
  readonly author: Author;
  readonly clock: Clock;
}

/** An engine's address as a mark shows it: without user, password and options. */
export function addressOf(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)(?:.*@)?([^/?]*).*$/s, '$1$2');
}

export function isMark({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): boolean {
  return stream === OPERATIONS_STREAM && (type === 'StoreMoved' || type === 'StoreUnmarked');
}

/** The move that the store's log records; `undefined` if it was never moved or the mark was removed. */
export async function moveInLog(store: Pick<EventStore, 'readStream'>): Promise<Move | undefined> {
  return (await operationsOf(store)).move;
}

/** Marks the store as moved: in its log, then in its folder. An existing mark in the log stays as it is. */
export async function markMoved(to: readonly string[], options: MarkOptions): Promise<void> {
  const { folder, store, clock } = options;
  const before = await moveInLog(store);
  if (before === undefined)
    await recordOperations(store, [{ type: 'StoreMoved', data: { to: [...to] } }], options);
  await writeMark(folder, before ?? { to, at: formatDateTime(clock.now()) });
}

/** Removes the mark: in the log, then in the folder. Throws `REFUSED` if there is none. */
export async function unmark(
  reason: string,
  { folder, ...options }: Omit<MarkOptions, 'store'> & { readonly store: EventStore | undefined },
): Promise<Move> {
  const { store } = options;
  const inLog = store && (await moveInLog(store));
  const move = inLog ?? moveInFolder(folder);
  if (move === undefined) throw new FuelError('REFUSED', `the store in ${folder} is not marked as moved`);
  if (store !== undefined && inLog !== undefined)
    await recordOperations(store, [{ type: 'StoreUnmarked', data: { reason } }], options);
  await rm(join(folder, FILE), { force: true });
  return move;
}

/** The embedded stores of a configuration: their folder, and which of the stores are files in it. */
type EmbeddedStores = Pick<Config, 'FUEL_DATA_DIR'> & { readonly embedded: readonly string[] };

/**
 * Returns where the embedded stores of this configuration were moved to, according to the folder or the log. `store` is
 * the embedded event store, if there is one.
 */
export async function moveOf(
  { FUEL_DATA_DIR, embedded }: EmbeddedStores,
  store: Pick<EventStore, 'readStream'> | undefined,
): Promise<Move | undefined> {
  if (embedded.length === 0) return undefined;
  const inFolder = moveInFolder(FUEL_DATA_DIR);
  if (inFolder !== undefined || !embedded.includes('store') || store === undefined) return inFolder;
  return moveInLog(store);
}

/** Throws `STORE_MOVED`, saying where the store is now and what to do, if `moveOf` finds a move. */
export async function assertNotMoved(
  stores: EmbeddedStores,
  store: Parameters<typeof moveOf>[1],
): Promise<void> {
  const move = await moveOf(stores, store);
  if (move !== undefined) throw new FuelError('STORE_MOVED', textOf(move, stores));
}

function textOf({ to, at }: Move, { FUEL_DATA_DIR }: EmbeddedStores): string {
  return (
    `the store in ${resolve(FUEL_DATA_DIR)} was moved to ${to.join(' and ')} at ${at}, and takes no changes: ` +
    USE_THE_OTHER
  );
}

/** Reads the mark in the folder. A mark that can't be read still counts; it just does not say where the store is. */
function moveInFolder(folder: string): Move | undefined {
  const path = join(folder, FILE);
  if (!existsSync(path)) return undefined;
  try {
    const { to, at } = JSON.parse(readFileSync(path, 'utf8')) as Move;
    return { to: to.map(String), at: String(at) };
  } catch {
    return { to: [`an unknown address (${path} can't be read)`], at: 'an unknown time' };
  }
}

/** Writes the mark completely or not at all, even if the power fails. */
async function writeMark(folder: string, move: Move): Promise<void> {
  const [partial, path] = [join(folder, `${FILE}.partial`), join(folder, FILE)];
  await rm(partial, { force: true }); // left by an interrupted run
  const text = `${JSON.stringify(move, null, 2)}\n`;
  await writeFile(partial, text, { flag: 'wx', mode: 0o600, flush: true });
  await rename(partial, path);
}
