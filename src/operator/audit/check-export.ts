import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { FuelError } from '../../base/errors.ts';
import type { LogCheckpoint, LogVerifier } from '../../seals/checkpoint.ts';
import { hashOf } from '../../seals/leaf.ts';
import { provesConsistency, provesInclusion } from '../../seals/merkle-tree.ts';
import { EXPORT, type ExportedEvent } from './export-proof.ts';

export interface ExportCheck {
  readonly events: number;
  /** The size of the tree that contains them. */
  readonly size: number;
  /** The size of the older checkpoint that this one continues; `null` if there is none. */
  readonly older: number | null;
  /** One line for each thing that is not proven. */
  readonly faults: readonly string[];
}

/** Checks an export without a store. Throws `REFUSED` if it is not an export that the key signed. */
export async function checkExport(folder: string, key: LogVerifier): Promise<ExportCheck> {
  const checkpoint = signed(join(folder, EXPORT.checkpoint), key);
  const path = join(folder, EXPORT.events);
  if (!existsSync(path))
    throw new FuelError('REFUSED', `${folder} is not an export: it has no ${EXPORT.events}`);
  const faults: string[] = [];
  let events = 0;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    events += 1;
    if (!isProven(line, checkpoint))
      faults.push(`line ${events} of ${EXPORT.events} is not in the tree: ${nameIn(line)}`);
  }
  const olderPath = join(folder, EXPORT.older);
  const older = existsSync(olderPath) ? signed(olderPath, key) : undefined;
  if (older !== undefined && !isContinued(older, checkpoint, join(folder, EXPORT.consistency)))
    faults.push(`the checkpoint of ${checkpoint.size} events does not continue that of ${older.size}`);
  return { events, size: checkpoint.size, older: older?.size ?? null, faults };
}

function signed(path: string, key: LogVerifier): LogCheckpoint {
  const checkpoint = existsSync(path) ? key.open(readFileSync(path, 'utf8')) : undefined;
  if (checkpoint !== undefined) return checkpoint;
  throw new FuelError('REFUSED', `${path} is not a checkpoint that the key ${key} signed`);
}

function isProven(line: string, { size, root }: LogCheckpoint): boolean {
  try {
    const { index, proof, data, metadata, ...place } = JSON.parse(line) as ExportedEvent;
    const event = {
      ...place,
      data: Buffer.from(data),
      metadata: Buffer.from(metadata),
      position: 0,
      recordedAtMs: 0,
    };
    return provesInclusion({ leaf: hashOf(event), index, path: proof }, { size, root });
  } catch {
    return false; // it is not a line of an export
  }
}

function nameIn(line: string): string {
  return /"stream":"([^"]*)","revision":(\d+)/.exec(line)?.slice(1).join('@') ?? 'it is not an event';
}

function isContinued(older: LogCheckpoint, newer: LogCheckpoint, path: string): boolean {
  try {
    const { proof } = JSON.parse(readFileSync(path, 'utf8')) as { readonly proof: readonly string[] };
    return provesConsistency(older, newer, proof);
  } catch {
    return false;
  }
}
