import type { Config } from '../../base/config/config.ts';
import { PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { type DiskState, readDisk } from '../../base/disk/disk.ts';
import type { Engines } from './engines.ts';

/** The disk of the embedded files, with how long pulls are answered without it; `undefined` where servers have all. */
export function storeDisk(
  { FUEL_DATA_DIR: folder }: Pick<Config, 'FUEL_DATA_DIR'>,
  { embedded }: Pick<Engines, 'embedded'>,
): (() => Promise<DiskState>) | undefined {
  if (embedded.length === 0) return undefined;
  const pulls = embedded.includes('store')
    ? 'pulls are answered from what is there for as long as its files can be read'
    : `pulls are answered for ${PROCESS_MAX_AGE_MS / 1000} s after this process could last report itself`;
  return async () => {
    const state = await readDisk(folder);
    if (state.refusal === undefined) return state;
    return { ...state, refusal: `${state.refusal}. Nothing is recorded until there is space; ${pulls}` };
  };
}
