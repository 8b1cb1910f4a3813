import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Engines, StoreName } from '../../service/engines/engines.ts';
import { followerStatus } from '../answers/follower.ts';

export type Stores = ReturnType<typeof storesOf>;

/**
 * What doctor looks at in the stores. Each is opened and read once, and none where that would make or update it: what is
 * not there in this version is `undefined`, and without an event store so is all that is read in it.
 */
export function storesOf(engines: Engines, config: Config, clock: Clock) {
  const find = async <Name extends StoreName>(name: Name): Promise<ReturnType<Engines[Name]> | undefined> => {
    if ((await engines.state(name)) !== 'current') return undefined;
    return engines[name]() as ReturnType<Engines[Name]>;
  };
  const nothing = async () => undefined;
  const none = async () => [];
  const directory = once(async () => {
    const store = await find('store');
    return store && loadDirectory(store, await find('directory'));
  });
  const followers = once(async () => {
    const store = await find('store');
    if (store === undefined) return undefined;
    return followerStatus({
      ...{ store, clock },
      view: (await find('view')) ?? {
        ...{ checkpoint: nothing, parked: none },
        countParked: async () => 0,
      },
      subscriptions: (await find('subscriptions')) ?? { status: nothing, parked: none },
      coordination: (await find('coordination')) ?? { holder: nothing, live: none, checkpoint: nothing },
    });
  });
  return { config, engines, find, directory, followers };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let value: Promise<T> | undefined;
  return () => {
    value ??= read();
    return value;
  };
}
