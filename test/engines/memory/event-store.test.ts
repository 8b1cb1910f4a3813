import { MemoryLog, openMemoryEventStore } from '../../../src/engines/memory/event-store.ts';
import { eventStoreContract } from '../../contracts/event-store.contract.ts';
import { FakeClock } from '../../support/fake-clock.ts';

eventStoreContract(async () => openMemoryEventStore(new MemoryLog(), new FakeClock()));
