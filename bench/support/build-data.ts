import { mkdirSync } from 'node:fs';
import { systemClock } from '../../src/base/clock.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { importSample } from './import-sample.ts';
import { progress } from './progress.ts';
import { projectAll } from './project-all.ts';
import { type Customer, provision } from './provision.ts';
import { ACCOUNTS, sampleFile } from './sample-events.ts';

/** Fills a data directory through the service's own import and projector: customers, events and view. */
export async function buildData(
  dataDir: string,
  lines: number,
  onProvisioned?: (store: EventStore, customers: readonly Customer[]) => Promise<void>,
): Promise<[Customer, ...Customer[]]> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const engines = await openEngines(loadConfig({ FUEL_DATA_DIR: dataDir }, 'command'), systemClock);
  const store = engines.store();
  await storeIdentity(store, systemClock);
  const [first, ...rest] = await provision(store, ACCOUNTS);
  if (first === undefined) throw new Error('there must be an account');
  await onProvisioned?.(store, [first, ...rest]);
  const say = progress(lines);
  await importSample({
    store,
    input: sampleFile({ lines, withPhotos: true }),
    lines,
    onProgress: ({ recorded }) => say('imported', recorded),
  });
  const projected = { store, view: engines.view(), coordination: engines.coordination() };
  await projectAll({ ...projected, onProgress: (position) => say('projected', position) });
  await engines.close();
  return [first, ...rest];
}
