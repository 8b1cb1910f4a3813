import type { Config } from '../../base/config/config.ts';
import { PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { type DiskState, readDisk } from '../../base/disk/disk.ts';
import type { Engines } from './engines.ts';

/** Makes a reader of the disk of the embedded files; `undefined` if servers hold all stores. */
export function storeDisk(
  { FUEL_DATA_DIR: folder }: Pick<Config, 'FUEL_DATA_DIR'>,
  { embedded }: Pick<Engines, 'embedded'>,
): (() => Promise<DiskState>) | undefined {
  if (embedded.length === 0) return undefined;
  const pulls = embedded.includes('store')
    ? 'pulls are answered from the existing data as long as its files can be read'
    : `pulls are answered for ${PROCESS_MAX_AGE_MS / 1000} s after the last report of this process`;
  return async () => {
    const state = await readDisk(folder);
    if (state.refusal === undefined) return state;
    return { ...state, refusal: `${state.refusal}. Nothing is recorded until there is space; ${pulls}` };
  };
}
