import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from './stage.ts';

const DRIVER = 'Driver of ';
/** The size of an id and the quote after it. */
const MAX_ID_BYTES = 20;

/**
 * Checks that no file of the data directory contains the driver of a transaction that was erased or redacted with exit
 * 0. Each file is searched once for all of them, since this process also answers as the receivers.
 */
export function judgeErasedBytes(stage: Stage, erased: readonly number[]): void {
  const ids = new Set(erased);
  for (const entry of readdirSync(stage.dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = bytesOf(join(entry.parentPath, entry.name));
    for (const id of new Set(driversIn(bytes)).intersection(ids))
      stage.fault(`${entry.name} still holds the driver of transaction ${id}, which was erased or redacted`);
  }
}

/** Yields the transactions whose drivers the bytes name. */
function* driversIn(bytes: Buffer): Generator<number, void> {
  for (let at = bytes.indexOf(DRIVER); at !== -1; at = bytes.indexOf(DRIVER, at)) {
    at += DRIVER.length;
    const id = /^(\d+)"/.exec(bytes.toString('latin1', at, at + MAX_ID_BYTES))?.[1];
    if (id !== undefined) yield Number(id);
  }
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0); // a write-ahead log whose last reader has ended
    throw error;
  }
}
