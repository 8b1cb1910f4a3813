import { readFileSync } from 'node:fs';
import { FuelError } from '../../base/errors.ts';
import type { LogCheckpoint, LogVerifier } from '../../seals/checkpoint.ts';

const STANDARD_INPUT = 0;

/** Reads a checkpoint from a file, or from standard input (`-`). Throws `REFUSED` if the key did not sign it. */
export function readCheckpoint(
  path: string,
  key: LogVerifier,
): { readonly checkpoint: LogCheckpoint; readonly note: string } {
  let note: string;
  try {
    note = readFileSync(path === '-' ? STANDARD_INPUT : path, 'utf8');
  } catch (cause) {
    throw new FuelError('REFUSED', `the checkpoint ${path} can't be read`, { cause });
  }
  const checkpoint = key.open(note);
  if (checkpoint !== undefined) return { checkpoint, note };
  throw new FuelError('REFUSED', `${path} is not a checkpoint signed with the key ${key}`);
}
