import { persistentSubscriptionsContract } from '../contracts/persistent-subscriptions.contract.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryGroups, openMemoryGroups } from './stores/groups.ts';

const WITHOUT_FAULTS = { repeats: () => false, shuffled: <T>(list: readonly T[]) => [...list] };

/** The simulated groups must fulfil the same contract as the real ones. */
persistentSubscriptionsContract(async () => {
  const clock = new FakeClock();
  const log = new MemoryLog();
  const groups = new MemoryGroups(log, clock, WITHOUT_FAULTS);
  return {
    store: openMemoryEventStore(log, clock),
    subscriptions: openMemoryGroups(groups),
    pass: async (ms) => {
      clock.advance(ms);
      groups.notify();
    },
  };
});
