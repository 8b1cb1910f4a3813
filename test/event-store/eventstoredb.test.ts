import { describe, inject } from 'vitest';
import { eventStoreContract } from '../contracts/event-store.contract.ts';
import { eventStoreDbAt, eventStoreDbOnDouble } from '../support/eventstoredb-under-test.ts';
import { ScopedStore } from '../support/scoped-store.ts';

const realUrl = inject('eventstoreUrl');

describe('on the double', () => eventStoreContract(eventStoreDbOnDouble));

describe.runIf(realUrl !== undefined)('on a real EventStoreDB', () =>
  eventStoreContract(() => ScopedStore.open(eventStoreDbAt(realUrl ?? '')), { sharedLog: true }),
);
