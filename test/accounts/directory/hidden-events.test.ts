import { expect, onTestFinished, test } from 'vitest';
import { switchOffUnread } from '../../../src/accounts/change-account.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { openStored } from '../../support/accounts/stored-directory.ts';
import { eventStoreDbOnDouble } from '../../support/event-store/eventstoredb-under-test.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

const author = { actor: 'test', command: 'test' };

/** An account with a key, on a server whose settings can hide its events, and a process that follows it. */
async function server() {
  const store = await eventStoreDbOnDouble();
  onTestFinished(() => store.close());
  const clock = new FakeClock();
  const append = async (stream: string, event: { type: string; data: object }): Promise<void> => {
    const recorded = newEvent(event as unknown as DomainEvent, author, clock.now());
    await store.append([{ stream, expected: 'any', events: [recorded] }]);
  };
  const set = (settings: object) => append('$$account-7', { type: '$metadata', data: settings });
  await append('account-7', opened());
  await append('account-7', keyIssued());
  const { stored } = openStored();
  onTestFinished(() => stored.close());
  const lines: Record<string, unknown>[] = [];
  const stopping = new AbortController();
  const live = new LiveDirectory({
    ...{ store, directory: new Directory(), clock, log: memoryLog(lines), signal: stopping.signal },
  });
  const ended = live.run();
  onTestFinished(async () => {
    stopping.abort();
    await ended;
  });
  await live.whenCaughtUp;
  const isOpen = () => live.directory.account(7)?.unreadable === null;
  return { store, clock, stored, set, lines, live, isOpen };
}

const MISSING = /^the events of account-7 before revision 1 are missing: if \$maxCount, .* remove it/;

test('an account of whose events the server hides some is closed, names what to set, and is open once it shows all', async () => {
  const { store, set, lines, live, isOpen } = await server();
  await set({ $maxCount: 100 });
  await set({ $tb: 1 });
  await until(() => !isOpen());
  expect(live.directory.account(7)?.unreadable?.reason).toMatch(MISSING);
  expect(lines).toContainEqual(
    expect.objectContaining({ account: 7, reason: expect.stringMatching(MISSING) }),
  );
  const directory = await loadDirectory(store);
  expect(directory.account(7)?.unreadable?.reason).toMatch(MISSING);
  await set({});
  await until(isOpen);
  expect((await loadDirectory(store)).account(7)?.unreadable).toBeNull();
});

test('a key whose account is closed because events are hidden can be switched off, and stays off', async () => {
  const { store, clock, set, live, isOpen } = await server();
  await set({ $tb: 2 });
  await until(() => !isOpen());
  const { entry, key } = live.directory.key(PREFIX) ?? {};
  expect([entry?.id, entry?.unreadable === null, key?.active]).toEqual([7, false, true]);
  const command = { type: 'SwitchKeyOff', accountId: 7, prefix: PREFIX, reason: 'leaked' } as const;
  await switchOffUnread({ store, clock, author }, command);
  await set({});
  await until(() => isOpen() && live.directory.key(PREFIX)?.key.active === false);
});
