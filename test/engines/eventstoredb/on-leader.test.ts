import { expect, onTestFinished, test } from 'vitest';
import { ACCOUNT_STREAMS } from '../../../src/domain/account-events.ts';
import { startEventStoreDbDouble } from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { eventStoreDbAt } from '../../support/event-store/eventstoredb-under-test.ts';
import { nameOf, record } from '../../support/event-store/store-events.ts';

/** Opens a store at a node that follows another one and lacks the event which that one has. */
async function behindAFollower() {
  const [leader, follower] = await Promise.all([startEventStoreDbDouble(), startEventStoreDbDouble()]);
  const [atLeader, store] = [eventStoreDbAt(leader.url), eventStoreDbAt(follower.url)];
  onTestFinished(async () => {
    await Promise.all([atLeader.close(), store.close()]);
    await Promise.all([leader.stop(), follower.stop()]);
  });
  await record(atLeader, 'account-1', 'recorded');
  follower.follow(leader.port);
  return store;
}

test('what a follower may not have yet is read from the leader', async () => {
  const store = await behindAFollower();
  expect((await store.readStream('account-1')).map(nameOf)).toEqual(['recorded']);
  expect(await store.head()).toBeGreaterThan(0);
});

test('events are followed on the leader', async () => {
  const store = await behindAFollower();
  const { signal } = new AbortController();
  for await (const { events } of store.subscribe({ prefixes: [ACCOUNT_STREAMS], after: 0, signal })) {
    if (events.length === 0) continue;
    expect(events.map(nameOf)).toEqual(['recorded']);
    return;
  }
});
