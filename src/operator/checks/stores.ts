import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Engines, StoreName } from '../../service/engines/engines.ts';
import { type FollowerStatus, followerStatus } from '../answers/follower.ts';

/** What doctor looks at in the stores. Each is opened and read once, and none where that would make or update it. */
export class Stores {
  readonly config: Config;
  readonly engines: Engines;
  readonly #clock: Clock;
  #directory: Promise<Directory | undefined> | undefined;
  #followers: Promise<readonly FollowerStatus[] | undefined> | undefined;

  constructor(engines: Engines, config: Config, clock: Clock) {
    this.engines = engines;
    this.config = config;
    this.#clock = clock;
  }

  /** `undefined` where there is none of this version. */
  readonly find = async <Name extends StoreName>(
    name: Name,
  ): Promise<ReturnType<Engines[Name]> | undefined> => {
    if ((await this.engines.state(name)) !== 'current') return undefined;
    return this.engines[name]() as ReturnType<Engines[Name]>;
  };

  /** `undefined` where there is no event store of this version. */
  directory(): Promise<Directory | undefined> {
    this.#directory ??= (async () => {
      const store = await this.find('store');
      return store && (await loadDirectory(store, await this.find('directory')));
    })();
    return this.#directory;
  }

  /** `undefined` where there is no event store of this version. */
  followers(): Promise<readonly FollowerStatus[] | undefined> {
    this.#followers ??= this.#readFollowers();
    return this.#followers;
  }

  async #readFollowers(): Promise<readonly FollowerStatus[] | undefined> {
    const store = await this.find('store');
    if (store === undefined) return undefined;
    const nothing = async () => undefined;
    const none = async () => [];
    return await followerStatus({
      store,
      view: (await this.find('view')) ?? {
        ...{ checkpoint: nothing, parked: none, building: nothing },
        countParked: async () => 0,
      },
      subscriptions: (await this.find('subscriptions')) ?? { status: nothing, parked: none },
      coordination: (await this.find('coordination')) ?? { holder: nothing, live: none },
      clock: this.#clock,
    });
  }
}
