import { join } from 'node:path';
import { openSqliteCoordination } from '../../../src/engines/sqlite/coordination.ts';
import { coordinationContract } from '../../contracts/coordination.contract.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

coordinationContract(async () => {
  const path = join(temporaryFolder(), 'control.db');
  const clock = new FakeClock();
  return {
    coordination: openSqliteCoordination({ path, clock }),
    second: () => openSqliteCoordination({ path, clock }),
    pass: async (ms) => clock.advance(ms),
    nowMs: () => clock.now(),
  };
});
