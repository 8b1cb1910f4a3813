import type { Directory } from '../../../projections/directory.ts';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Engines, StoreName, StoreState } from '../../service/engines/engines.ts';
import { type FollowerStatus, followerStatus } from '../../service/ops/followers.ts';

/** The stores that there are, each opened once; `undefined` where that would make or update one. */
export class FoundStores {
  readonly #engines: Engines;
  readonly #clock: Clock;
  #directory: Promise<Directory | undefined> | undefined;
  #followers: Promise<readonly FollowerStatus[] | undefined> | undefined;

  constructor(engines: Engines, clock: Clock) {
    this.#engines = engines;
    this.#clock = clock;
  }

  state(name: StoreName): Promise<StoreState> {
    return this.#engines.state(name);
  }

  async find<Name extends StoreName>(name: Name): Promise<ReturnType<Engines[Name]> | undefined> {
    if ((await this.state(name)) !== 'current') return undefined;
    return this.#engines[name]() as ReturnType<Engines[Name]>;
  }

  directory(): Promise<Directory | undefined> {
    this.#directory ??= this.#loadDirectory();
    return this.#directory;
  }

  followers(): Promise<readonly FollowerStatus[] | undefined> {
    this.#followers ??= this.#readFollowers();
    return this.#followers;
  }

  async #loadDirectory(): Promise<Directory | undefined> {
    const store = await this.find('store');
    return store && (await loadDirectory(store, await this.find('directory')));
  }

  async #readFollowers(): Promise<readonly FollowerStatus[] | undefined> {
    const store = await this.find('store');
    if (store === undefined) return undefined;
    return await followerStatus({
      store,
      view: (await this.find('view')) ?? {
        checkpoint: async () => undefined,
        countParked: async () => 0,
        parked: async () => [],
        build: { checkpoint: async () => undefined },
      },
      subscriptions: (await this.find('subscriptions')) ?? {
        status: async () => undefined,
        parked: async () => [],
      },
      coordination: (await this.find('coordination')) ?? {
        holder: async () => undefined,
        live: async () => [],
      },
      clock: this.#clock,
    });
  }
}
