import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';
import { FuelError } from '../../../src/errors.ts';
import { runRebuildWorkers } from '../../../src/service/rebuild/rebuild-workers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('what ends a thread of a rebuild ends the command with its code, not as a fault of the program', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'events.db'), 'no database, but long enough to look like one '.repeat(50));
  const config = loadConfig({ FUEL_DATA_DIR: folder, FUEL_LOG_LEVEL: 'fatal' }, 'command');
  const { signal } = new AbortController();
  const failed = await runRebuildWorkers(2, { config, holder: 'test', signal }).catch(
    (error: unknown) => error,
  );
  expect(failed).toBeInstanceOf(FuelError);
  expect(failed).toMatchObject({ code: 'STORE_DAMAGED' });
});
