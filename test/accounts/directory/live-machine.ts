import { onTestFinished } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { LiveDirectory } from '../../../src/accounts/directory/live-directory.ts';
import type { StoredDirectory } from '../../../src/accounts/directory/rows/stored-directory.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { EventStore, SubscribeOptions } from '../../../src/event-store/event-store.ts';
import { continuesAfter } from '../../../src/event-store/store-identity.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { openStored } from '../../support/accounts/stored-directory.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';
import { memoryLog } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

/** The steps of the stored directory that a test replaces. */
type Steps = Partial<Pick<StoredDirectory, 'load' | 'save'>>;
export type Machine = ReturnType<typeof machine>;

export const contacts = (n: number): AccountEvent => ({
  type: 'AccountContactsSet',
  data: { account_id: 9, emails: [`${n}@example.com`] },
});

/** A machine with its stores, on which processes follow the account streams and save what they know. */
export function machine() {
  const stores = openPushStores();
  const { clock, store, append } = stores;
  const { rows, stored } = openStored();
  onTestFinished(() => stored.close());

  /** Starts a process on this store, or on another one that a test has made of it. */
  function start({ on = store, ...steps }: Steps & { readonly on?: EventStore } = {}) {
    const begunAt: number[] = [];
    const told: { event: AccountEvent; position: number; atMs: number }[] = [];
    /** What was told, with the revision that the directory had of account 7 at that moment. */
    const toldAt: string[] = [];
    const moved: { position: number; of: number; isCaughtUp: boolean; isOpen: boolean }[] = [];
    const lines: Record<string, unknown>[] = [];
    const stopping = new AbortController();
    const isOpen = () => live.directory.account(7)?.unreadable === null;
    const live: LiveDirectory = new LiveDirectory({
      ...{ store: watched(on, begunAt), directory: new Directory(), clock, log: memoryLog(lines) },
      ...{ signal: stopping.signal, stored: storedWith(stored, steps) },
      onEvent(event, place) {
        told.push({ event, ...place });
        toldAt.push(`${event.type} ${live.directory.account(7)?.revision}`);
      },
      onMoved(position) {
        const { directory, isCaughtUp } = live;
        moved.push({ position, of: directory.position, isCaughtUp, isOpen: isOpen() });
      },
    });
    const ended = live.run();
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended;
    };
    onTestFinished(stop);
    /** Returns how often the log says this. */
    const said = (text: string) => lines.filter(({ msg }) => String(msg).includes(text)).length;
    return { live, told, toldAt, moved, lines, said, begunAt, isOpen, ended, stop };
  }

  async function startAndCatchUp(steps: Steps = {}) {
    const run = start(steps);
    await until(() => run.live.isCaughtUp);
    return run;
  }

  /** Enough events to be saved, on account 9. */
  const recordMany = () => append('account-9', ...Array.from({ length: 1_000 }, (_, n) => contacts(n)));
  const openNine = () => append('account-9', opened('Other', 9));
  const savedAt = async () => {
    const checkpoint = await rows.checkpoint();
    return checkpoint && continuesAfter(checkpoint);
  };
  return { ...stores, rows, stored, start, startAndCatchUp, recordMany, openNine, savedAt };
}

/** Records the positions after which the store is followed. */
export function watched(store: EventStore, begunAt: number[]): EventStore {
  return replacing(store, {
    subscribe(options: SubscribeOptions) {
      begunAt.push(options.after);
      return store.subscribe(options);
    },
  });
}

/** The stored directory with some steps replaced. */
export function storedWith(stored: StoredDirectory, steps: Steps): StoredDirectory {
  return {
    load: stored.load.bind(stored),
    save: stored.save.bind(stored),
    owners: stored.owners.bind(stored),
    close: () => stored.close(),
    ...steps,
  } as StoredDirectory;
}
