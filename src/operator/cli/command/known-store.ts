import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from '../../../base/config/config.ts';
import { FuelError } from '../../../base/errors.ts';
import { settingsFor } from '../../../engines/engines.ts';
import { EMBEDDED_FILES } from '../../../engines/sqlite/embedded-files.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import type { Output } from './output.ts';

/** Throws `REFUSED` if the events are embedded and their file does not exist: opening it would create it. */
export function requireStore(config: Config, engines: Pick<Engines, 'embedded'>): void {
  if (hasStore(config, engines)) return;
  throw new FuelError(
    'REFUSED',
    `There is no store in ${resolve(config.FUEL_DATA_DIR)}. Set FUEL_DATA_DIR to the service's data directory, or ` +
      settingsFor('store'),
  );
}

export function hasStore({ FUEL_DATA_DIR }: Config, { embedded }: Pick<Engines, 'embedded'>): boolean {
  return !embedded.includes('store') || existsSync(join(FUEL_DATA_DIR, EMBEDDED_FILES.events));
}

/** Says what a command that only reads found missing, apart from what the events hold all of, and from leases. */
export function noteMissing(
  missing: readonly string[],
  { config, out }: { readonly config: Config; readonly out: Pick<Output, 'note'> },
): void {
  const { accounts, control } = EMBEDDED_FILES;
  const files = [...new Set(missing)].filter((file) => ![accounts, control].includes(file));
  if (files.length === 0) return;
  out.note(`${resolve(config.FUEL_DATA_DIR)} has no ${files.join(', ')} yet: \`fuel serve\` creates that`);
}

/** The store that a dry run reads. If none exists, everything is new, and none is created. */
export function storeOfDryRun({
  config,
  engines,
  out,
}: {
  readonly config: Config;
  readonly engines: Engines;
  readonly out: Pick<Output, 'note'>;
}): Pick<EventStore, 'readStream' | 'readStreams' | 'append'> {
  if (hasStore(config, engines)) return engines.store();
  out.note(`There is no store in ${resolve(config.FUEL_DATA_DIR)} yet: everything is new`);
  return {
    readStream: async () => [],
    readStreams: async (streams) => streams.map(() => []),
    append: () => Promise.reject(new Error('a dry run records nothing')),
  };
}
