import { MemoryLog, openMemoryEventStore } from '../../src/engines/memory/event-store.ts';
import { persistentSubscriptionsContract } from '../contracts/persistent-subscriptions.contract.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryGroups, openMemoryGroups } from './stores/groups.ts';

const WITHOUT_FAULTS = { repeats: () => false, shuffled: <T>(list: readonly T[]) => [...list] };

/** The simulated groups are held to what the real ones are held to. */
persistentSubscriptionsContract(async () => {
  const clock = new FakeClock();
  const log = new MemoryLog();
  const groups = new MemoryGroups(log, () => clock.now(), WITHOUT_FAULTS);
  return {
    store: openMemoryEventStore(log, clock),
    subscriptions: openMemoryGroups(groups),
    pass: async (ms) => {
      clock.advance(ms);
      groups.notify();
    },
  };
});
