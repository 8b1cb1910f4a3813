import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FuelError } from '../../base/errors.ts';
import type { LogCheckpoint, LogVerifier } from '../../seals/checkpoint.ts';
import { hashOf } from '../../seals/leaf.ts';
import { provesConsistency, provesInclusion } from '../../seals/merkle-tree.ts';
import { fileLines } from '../lines/file-lines.ts';
import { EXPORT, type ExportedEvent } from './export-proof.ts';
import { ExpectedStreams, type ExportedStream } from './exported-streams.ts';
import { readCheckpoint } from './read-checkpoint.ts';

const EVENT_MEMBERS = ['index', 'stream', 'revision', 'id', 'type', 'data', 'metadata', 'proof'] as const;
const STREAM_MEMBERS = ['stream', 'revision', 'left_out'] as const;

/** The statements that an export does not prove, even if it has no faults. */
const NOT_PROVEN = [
  `that ${EXPORT.streams} names each stream of the account, its last event before the checkpoint, and only erased, redacted or out-of-range events as left out`,
  'that nothing was recorded after the checkpoint',
] as const;

export interface ExportCheck {
  readonly events: number;
  readonly streams: number;
  /** Events that `streams.jsonl` says are left out. */
  readonly left_out: number;
  /** The size of the tree that contains them. */
  readonly size: number;
  /** The size of the older checkpoint that this one continues; `null` if there is none. */
  readonly older: number | null;
  /** One line for each thing that is wrong. */
  readonly faults: readonly string[];
  readonly not_proven: readonly string[];
}

/** Checks an export without a store. Throws `REFUSED` if it is not an export that the key signed. */
export async function checkExport(folder: string, key: LogVerifier): Promise<ExportCheck> {
  const { checkpoint } = readCheckpoint(join(folder, EXPORT.checkpoint), key);
  for (const name of [EXPORT.streams, EXPORT.events])
    if (!existsSync(join(folder, name)))
      throw new FuelError(
        'REFUSED',
        `${folder} is not an export, since it has no ${name}. Name a folder that \`fuel audit export\` made`,
      );
  const faults: string[] = [];
  const streams = await readStreams(join(folder, EXPORT.streams), faults);
  const events = await checkEvents(join(folder, EXPORT.events), { checkpoint, streams, faults });
  const olderPath = join(folder, EXPORT.older);
  const older = existsSync(olderPath) ? readCheckpoint(olderPath, key).checkpoint : undefined;
  if (older !== undefined && !isContinued(older, checkpoint, join(folder, EXPORT.consistency)))
    faults.push(`the checkpoint of ${checkpoint.size} events does not continue that of ${older.size}`);
  return {
    events,
    streams: streams.length,
    left_out: streams.reduce((sum, { left_out }) => sum + left_out.length, 0),
    size: checkpoint.size,
    older: older?.size ?? null,
    faults,
    not_proven: NOT_PROVEN,
  };
}

async function readStreams(path: string, faults: string[]): Promise<ExportedStream[]> {
  const streams = new Map<string, ExportedStream>();
  let number = 0;
  for await (const line of fileLines(path)) {
    const stream = readLine<ExportedStream>(line, STREAM_MEMBERS);
    number += 1;
    if (stream === undefined || !isStream(stream))
      faults.push(`line ${number} of ${EXPORT.streams} is not a stream`);
    else if (streams.has(stream.stream))
      faults.push(`line ${number} of ${EXPORT.streams} repeats ${stream.stream}`);
    else streams.set(stream.stream, stream);
  }
  return [...streams.values()];
}

interface EventChecks {
  readonly checkpoint: LogCheckpoint;
  readonly streams: readonly ExportedStream[];
  readonly faults: string[];
}

/** Returns the number of lines. */
async function checkEvents(path: string, { checkpoint, streams, faults }: EventChecks): Promise<number> {
  const expected = new ExpectedStreams(streams);
  let [number, lastIndex] = [0, -1];
  for await (const line of fileLines(path)) {
    number += 1;
    const fault = (what: string) => faults.push(`line ${number} of ${EXPORT.events} ${what}`);
    const event = readLine<ExportedEvent>(line, EVENT_MEMBERS);
    if (event === undefined || !isEvent(event)) {
      fault('is not an event');
      continue;
    }
    const name = `${event.stream}@${event.revision}`;
    if (!isProven(event, checkpoint)) {
      fault(`is not in the tree: ${name}`);
      continue;
    }
    if (event.index <= lastIndex) fault(`is not in the order of the log: ${name}`);
    lastIndex = Math.max(lastIndex, event.index);
    const misplaced = expected.take(event);
    if (misplaced !== undefined) fault(`is ${name}, but ${misplaced}`);
  }
  for (const missing of expected.missing()) faults.push(`${EXPORT.events} lacks ${missing}`);
  return number;
}

/**
 * Returns the object on a line that has exactly these members, in this order and as `JSON.stringify` writes them, so that
 * no other reader can see anything else in it.
 */
function readLine<T extends object>(line: string, members: readonly (keyof T & string)[]): T | undefined {
  try {
    const value = JSON.parse(line) as T;
    const isExact = Object.keys(value).join() === members.join() && `${JSON.stringify(value)}\n` === line;
    return isExact ? value : undefined;
  } catch {
    return undefined; // it is not JSON
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown): boolean => typeof value === 'string';
const isHash = (value: unknown): boolean => typeof value === 'string' && /^[A-Za-z0-9+/]{43}=$/.test(value);

function isStream({ stream, revision, left_out }: ExportedStream): boolean {
  return (
    isText(stream) &&
    isCount(revision) &&
    Array.isArray(left_out) &&
    left_out.every((each, at) => isCount(each) && each <= revision && each > (left_out[at - 1] ?? -1))
  );
}

function isEvent({ index, stream, revision, id, type, data, metadata, proof }: ExportedEvent): boolean {
  return (
    [index, revision].every(isCount) &&
    [stream, id, type, data, metadata].every(isText) &&
    Array.isArray(proof) &&
    proof.every(isHash)
  );
}

function isProven(exported: ExportedEvent, { size, root }: LogCheckpoint): boolean {
  const { index, proof, data, metadata, ...place } = exported;
  const event = {
    ...place,
    data: Buffer.from(data),
    metadata: Buffer.from(metadata),
    position: 0,
    recordedAtMs: 0,
  };
  try {
    return provesInclusion({ leaf: hashOf(event), index, path: proof }, { size, root });
  } catch {
    return false; // a hash of the proof is not base64
  }
}

function isContinued(older: LogCheckpoint, newer: LogCheckpoint, path: string): boolean {
  try {
    const { proof } = JSON.parse(readFileSync(path, 'utf8')) as { readonly proof: readonly string[] };
    return provesConsistency(older, newer, proof);
  } catch {
    return false;
  }
}
