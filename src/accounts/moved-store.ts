import { existsSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../base/config/config.ts';
import { FuelError } from '../base/errors.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import { recordedAt } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';
import type { Author } from '../event-store/new-event.ts';
import { readOperations, recordOperations } from '../event-store/operations.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';

const FILE = 'moved.json';
/** What to do where a store was moved. */
export const USE_THE_OTHER =
  'set the settings of the engines to those (docs/operations/engines.md); to use it here again, while nothing uses ' +
  'the other: fuel store unmark --reason …';

/** Where a store was moved to, and when. */
export interface Move {
  /** Addresses without credentials. */
  readonly to: readonly string[];
  readonly at: string;
}

/** What it takes to mark an embedded store as moved, or to take the mark away. */
export interface MarkOptions {
  readonly folder: string;
  readonly store: Pick<EventStore, 'readStream' | 'append'>;
  readonly author: Author;
  readonly clock: Clock;
}

/** An engine's address as a mark tells it: no user, no password, no options. */
export function addressOf(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)(?:.*@)?([^/?]*).*$/s, '$1$2');
}

export function isMark({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): boolean {
  return stream === OPERATIONS_STREAM && (type === 'StoreMoved' || type === 'StoreUnmarked');
}

/** What the store's log says; `undefined` where it was never moved, or the mark was taken away. */
export async function moveInLog(store: Pick<EventStore, 'readStream'>): Promise<Move | undefined> {
  let move: Move | undefined;
  for (const { type, data, recorded } of await readOperations(store)) {
    if (type === 'StoreMoved') move = { to: data.to, at: recordedAt(recorded) };
    if (type === 'StoreUnmarked') move = undefined;
  }
  return move;
}

/** Marks the store as moved: in its log, then in its folder. What is marked already stays as it is. */
export async function markMoved(to: readonly string[], options: MarkOptions): Promise<void> {
  const { folder, store, clock } = options;
  const before = await moveInLog(store);
  if (before === undefined)
    await recordOperations(store, [{ type: 'StoreMoved', data: { to: [...to] } }], options);
  await writeMark(folder, before ?? { to, at: formatDateTime(clock.now()) });
}

/** Takes the mark away: in the log, then in the folder. Throws `REFUSED` where there is none. */
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

/** What a configuration would use: its folder, and the stores that are files in it. */
type Place = Pick<Config, 'FUEL_DATA_DIR'> & { readonly embedded: readonly string[] };

/**
 * Where the embedded stores that this configuration would use were moved to, by the folder or by the log. `store` is
 * the embedded event store, if there is one.
 */
export async function moveOf(
  { FUEL_DATA_DIR, embedded }: Place,
  store: Pick<EventStore, 'readStream'> | undefined,
): Promise<Move | undefined> {
  if (embedded.length === 0) return undefined;
  const inFolder = moveInFolder(FUEL_DATA_DIR);
  if (inFolder !== undefined || !embedded.includes('store') || store === undefined) return inFolder;
  return moveInLog(store);
}

/** Throws `STORE_MOVED`, with where it went and what to do, where `moveOf` finds a move. */
export async function assertNotMoved(place: Place, store: Parameters<typeof moveOf>[1]): Promise<void> {
  const move = await moveOf(place, store);
  if (move !== undefined) throw new FuelError('STORE_MOVED', textOf(move, place));
}

function textOf({ to, at }: Move, { FUEL_DATA_DIR }: Place): string {
  return (
    `the store in ${resolve(FUEL_DATA_DIR)} was moved to ${to.join(' and ')} at ${at}, and takes no changes: ` +
    USE_THE_OTHER
  );
}

/** A mark that can't be read is one: it does not say where to. */
function moveInFolder(folder: string): Move | undefined {
  const path = join(folder, FILE);
  if (!existsSync(path)) return undefined;
  try {
    const { to, at } = JSON.parse(readFileSync(path, 'utf8')) as Move;
    return { to: to.map(String), at: String(at) };
  } catch {
    return { to: [`an address that ${path} does not tell`], at: 'a time that it does not tell' };
  }
}

/** Whole or not at all, also after a power cut. */
async function writeMark(folder: string, move: Move): Promise<void> {
  const [partial, path] = [join(folder, `${FILE}.partial`), join(folder, FILE)];
  await rm(partial, { force: true }); // of a run that was interrupted
  const text = `${JSON.stringify(move, null, 2)}\n`;
  await writeFile(partial, text, { flag: 'wx', mode: 0o600, flush: true });
  await rename(partial, path);
}
