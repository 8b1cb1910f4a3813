import { MemoryCoordination, openMemoryCoordination } from '../../../src/engines/memory/coordination.ts';
import { coordinationContract } from '../../contracts/coordination.contract.ts';
import { FakeClock } from '../../support/fake-clock.ts';

coordinationContract(async () => {
  const clock = new FakeClock();
  const stored = new MemoryCoordination();
  return {
    coordination: openMemoryCoordination(stored, clock),
    second: () => openMemoryCoordination(stored, clock),
    pass: async (ms) => clock.advance(ms),
    nowMs: () => clock.now(),
  };
});
