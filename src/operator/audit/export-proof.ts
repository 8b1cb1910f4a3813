import { open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownFolder } from '../../base/config/own-files.ts';
import { FuelError } from '../../base/errors.ts';
import { accountStream } from '../../domain/account-events.ts';
import { noticesStream } from '../../domain/operations-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { membersOf, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import { type RecordedEvent, storedText } from '../../event-store/recorded-event.ts';
import type { LogCheckpoint } from '../../seals/checkpoint.ts';
import { type Leaf, leavesAfter } from '../../seals/leaves.ts';
import { ConsistencyProof, type Hash, InclusionPaths } from '../../seals/merkle-tree.ts';
import { lastSeal } from '../../seals/seals.ts';
import { fileLines } from '../lines/file-lines.ts';
import { ExportedStreams } from './exported-streams.ts';

/** The files of an export. */
export const EXPORT = {
  events: 'events.jsonl',
  streams: 'streams.jsonl',
  checkpoint: 'checkpoint.txt',
  older: 'older-checkpoint.txt',
  consistency: 'consistency.json',
} as const;

/** One line of `events.jsonl`. The proof's hashes are in base64. */
export type ExportedEvent = ReturnType<typeof exported> & { readonly proof: readonly string[] };

export interface ExportOptions {
  readonly store: EventStore;
  readonly accountId: number;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** An older checkpoint with its note. The export proves that the newest one continues it. */
  readonly older?: { readonly checkpoint: LogCheckpoint; readonly note: string } | undefined;
  /** The folder to write to. It must be new or empty. If the export fails, what was written is removed. */
  readonly folder: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes the events of an account and its transactions, each with the proof that it is in the tree of the newest
 * checkpoint. Reads the log once. The events wait in a file for their proofs, which are kept in memory until the end.
 * Returns how many there are. Rejects with `REFUSED` if nothing is sealed or the folder is not empty.
 */
export async function exportProof(
  options: ExportOptions,
): Promise<{ readonly events: number; readonly size: number }> {
  const { store, older, folder } = options;
  const seal = await lastSeal(store);
  if (seal?.checkpoint === undefined)
    throw new FuelError('REFUSED', 'nothing is sealed yet. Start a process with the role projector');
  const { size } = seal;
  if (older !== undefined && older.checkpoint.size > size)
    throw new FuelError(
      'REFUSED',
      `the checkpoint covers ${older.checkpoint.size} events, but the newest seal only ${size}. Run \`fuel audit verify\``,
    );
  const created = ownFolder(folder);
  if ((await readdir(folder)).length > 0)
    throw new FuelError('REFUSED', `${folder} is not empty. Name a new folder`);
  try {
    return { events: await writeExport(options, seal.note, size), size };
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name));
    if (created !== undefined) await rm(created, { recursive: true });
    throw error;
  }
}

/** Returns the number of events. */
async function writeExport(options: ExportOptions, note: string, size: number): Promise<number> {
  const { store, older, folder, signal } = options;
  const paths = new InclusionPaths();
  const consistency = older && new ConsistencyProof(older.checkpoint.size, size);
  const streams = new ExportedStreams();
  const isWanted = selection(options, streams);
  const proofs: (readonly Hash[])[] = [];
  const waiting = join(folder, `${EXPORT.events}.part`);
  const file = await open(waiting, 'wx', 0o600);
  try {
    const { gaps } = await operationsOf(store);
    for await (const leaves of leavesAfter(store, { size: 0, position: 0 }, { gaps, signal })) {
      const lines: string[] = [];
      for (const leaf of leaves) {
        if (leaf.index >= size) continue;
        const isExported = isWanted(leaf);
        const path = paths.append(leaf.hash, isExported);
        consistency?.append(leaf.hash);
        if (!isExported) continue;
        proofs.push(path);
        lines.push(jsonLine(exported(leaf.index, leaf.event as RecordedEvent)));
      }
      await file.write(lines.join(''));
    }
  } finally {
    await file.close();
  }
  signal?.throwIfAborted();
  paths.end();
  const write = (name: string, text: string): Promise<void> =>
    writeFile(join(folder, name), text, { flag: 'wx', mode: 0o600 });
  await write(EXPORT.streams, streams.lines().map(jsonLine).join(''));
  await addProofs(waiting, join(folder, EXPORT.events), proofs);
  await write(EXPORT.checkpoint, note);
  if (older !== undefined && consistency !== undefined) {
    await write(EXPORT.older, older.note);
    await write(EXPORT.consistency, jsonLine({ proof: consistency.end() }));
  }
  return proofs.length;
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

async function addProofs(from: string, to: string, proofs: readonly (readonly Hash[])[]): Promise<void> {
  const target = await open(`${to}.new`, 'wx', 0o600);
  try {
    let at = 0;
    for await (const line of fileLines(from))
      await target.write(jsonLine({ ...(JSON.parse(line) as object), proof: proofs[at++] ?? [] }));
  } finally {
    await target.close();
  }
  await rename(`${to}.new`, to);
  await rm(from);
}

/** An event as it is exported. Data and metadata are the stored texts. */
function exported(index: number, { stream, revision, id, type, data, metadata }: RecordedEvent) {
  const text = (part: unknown): string => (part instanceof Uint8Array ? storedText(part) : '');
  return { index, stream, revision, id, type, data: text(data), metadata: text(metadata) };
}

/**
 * Selects the leaves of the account: those of its own streams, and of transactions whose first event that is left names it.
 * Adds them to `streams`, also those that are left out.
 */
function selection(
  { accountId, sinceMs = -Infinity, untilMs = Infinity }: ExportOptions,
  streams: ExportedStreams,
): (leaf: Leaf) => boolean {
  const own = new Set([accountStream(accountId), noticesStream(accountId)]);
  const isOfAccount = ({ event, stream }: Leaf): boolean => {
    if (own.has(stream) || streams.has(stream)) return true;
    if (!stream.startsWith(TRANSACTION_STREAMS) || !(event?.data instanceof Uint8Array)) return false;
    return ofAccount(event.data, accountId);
  };
  const isInRange = ({ event, gap }: Leaf): boolean => {
    if (!(event?.data instanceof Uint8Array) || !(event.metadata instanceof Uint8Array)) return false;
    // A redacted event that an engine still returns would name its driver.
    if (gap !== undefined && membersOf(parsed(event.data)).driver != null) return false;
    const atMs = occurredAtMs({ ...event, metadata: parsed(event.metadata) });
    return atMs >= sinceMs && atMs <= untilMs;
  };
  return (leaf) => {
    if (!isOfAccount(leaf)) return false;
    const isExported = isInRange(leaf);
    streams.add(leaf, isExported);
    return isExported;
  };
}

function ofAccount(data: Uint8Array, accountId: number): boolean {
  if (!storedText(data).includes(`${accountId}`)) return false; // nearly always, without parsing
  return (parsed(data) as { readonly account_id?: unknown } | undefined)?.account_id === accountId;
}

/** Returns `undefined` for a text that is not JSON, which another writer has recorded. */
function parsed(stored: Uint8Array): unknown {
  try {
    return JSON.parse(storedText(stored));
  } catch {
    return undefined;
  }
}
