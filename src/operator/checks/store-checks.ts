import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import { findMasterKeys, otherKeyFile } from '../../accounts/master-key.ts';
import { moveOf } from '../../accounts/moved-store.ts';
import { recordedMasterKeys } from '../../accounts/store-binding.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { readDisk } from '../../base/disk/disk.ts';
import type { Engines, StoreName } from '../../service/engines/engines.ts';
import { MAX_BACKLOG_COUNTED } from '../../service/ops/shared-figures.ts';
import { type FollowerStatus, followerStatus } from '../answers/follower.ts';
import { checkContacts, checkCorporates, failingWebhooks, MAX_FAILING, webhooksOf } from './accounts.ts';
import { type Finding, notChecked, right } from './check.ts';
import { checkMasterKeys } from './master-keys.ts';
import { checkMissingStore, checkStore, movedStore } from './store.ts';
import { type CheckId, judged, verdictOf } from './table.ts';

/** What doctor looks at in the stores. Each is opened and read once, and none where that would make or update it. */
export class StoreChecks {
  readonly #engines: Engines;
  readonly #config: Config;
  readonly #clock: Clock;
  #directory: Promise<Directory | undefined> | undefined;
  #followers: Promise<readonly FollowerStatus[] | undefined> | undefined;

  constructor(engines: Engines, config: Config, clock: Clock) {
    this.#engines = engines;
    this.#config = config;
    this.#clock = clock;
  }

  async store(): Promise<Finding> {
    const config = this.#config;
    const { embedded } = this.#engines;
    const store = await this.#find('store');
    const move = await moveOf({ ...config, ...this.#engines }, store);
    if (move !== undefined) return movedStore(move);
    if (store === undefined)
      return checkMissingStore((name) => this.#engines.state(name), config.FUEL_DATA_DIR);
    const [view, queue, coordination] = await Promise.all([
      this.#find('view'),
      this.#find('queue'),
      this.#find('coordination'),
    ]);
    const isQueueMissing = (await this.#engines.state('queue')) === 'missing';
    return checkStore({ store, view, embedded, queue, isQueueMissing, coordination }, config);
  }

  accounts(): Promise<Finding> {
    return this.#ofDirectory((all) => {
      const accounts = [...all.accounts()];
      const closed = accounts.filter(({ unreadable }) => unreadable !== null).map(({ id }) => id);
      const detail = `${accounts.length} accounts; the events of each can be read`;
      return judged('accounts', { atMs: this.#clock.now(), closed }, detail);
    });
  }

  masterKeys(): Promise<Finding> {
    return this.#ofDirectory(async (all) => {
      const store = await this.#find('store');
      const recorded = store === undefined ? [] : await recordedMasterKeys(store);
      const otherFile = otherKeyFile(this.#config);
      return checkMasterKeys(all, findMasterKeys(this.#config), { recorded, otherFile });
    });
  }

  parked(): Promise<Finding> {
    return this.#ofFollowers('parked-events', ({ parked }) => `${parked}`);
  }

  consumers(): Promise<Finding> {
    const countWebhooks = async (): Promise<number> => {
      const all = await this.#loadedDirectory();
      return all === undefined ? 0 : this.#webhooks(all).length;
    };
    return this.#ofFollowers('consumers', ({ holder }) => holder ?? 'nothing to do yet', countWebhooks);
  }

  lag(): Promise<Finding> {
    return this.#ofFollowers('lag', (each) => `${each.lag_events ?? 'many'} events, ${each.lag_seconds} s`);
  }

  contacts(): Promise<Finding> {
    return this.#ofDirectory((all) => checkContacts(this.#webhooks(all), this.#config.FUEL_OPERATOR_EMAIL));
  }

  webhooks(): Promise<Finding> {
    return this.#ofDirectory(async (all) => {
      if ((await this.#engines.state('queue')) === 'damaged') return notChecked(['data-directory']);
      const keys = this.#webhooks(all).map(({ key }) => key);
      const disabled = keys.filter(({ webhook }) => webhook?.disabled != null).map(({ prefix }) => prefix);
      const queue = await this.#find('queue');
      const { pending = 0, held = 0 } = (await queue?.backlog(MAX_BACKLOG_COUNTED)) ?? {};
      const failing = failingWebhooks((await queue?.failingLanes(MAX_FAILING)) ?? [], { directory: all });
      const counts = `${keys.length} webhooks, ${disabled.length} switched off, ${failing.length} failing`;
      const detail = `${counts}; deliveries: ${pending} pending, ${held} held`;
      return judged('webhooks', { atMs: this.#clock.now(), disabled, failing }, detail);
    });
  }

  corporates(): Promise<Finding> {
    return this.#ofDirectory(async (all) => {
      const view = await this.#find('view');
      return view === undefined
        ? right('there is no view yet')
        : checkCorporates(all, view, this.#clock.now());
    });
  }

  async #find<Name extends StoreName>(name: Name): Promise<ReturnType<Engines[Name]> | undefined> {
    if ((await this.#engines.state(name)) !== 'current') return undefined;
    return this.#engines[name]() as ReturnType<Engines[Name]>;
  }

  #webhooks(all: Directory) {
    return [...webhooksOf(all, this.#config.FUEL_ENVIRONMENT)];
  }

  #loadedDirectory(): Promise<Directory | undefined> {
    this.#directory ??= (async () => {
      const store = await this.#find('store');
      return store && (await loadDirectory(store, await this.#find('directory')));
    })();
    return this.#directory;
  }

  async #ofDirectory(judge: (all: Directory) => Finding | Promise<Finding>): Promise<Finding> {
    const all = await this.#loadedDirectory();
    return all === undefined ? this.#noStore() : judge(all);
  }

  async #ofFollowers(
    id: CheckId,
    describe: (follower: FollowerStatus) => string,
    webhooks: () => Promise<number> = async () => 0,
  ): Promise<Finding> {
    const atMs = this.#clock.now();
    // Where it is full no process can report what it works on.
    const disk = this.#engines.embedded.length > 0 ? await readDisk(this.#config.FUEL_DATA_DIR) : undefined;
    const { causes } = verdictOf(id, { atMs, disk });
    if (causes.length > 0) return notChecked(causes);
    this.#followers ??= this.#readFollowers();
    const followers = await this.#followers;
    if (followers === undefined) return this.#noStore();
    const detail = followers.map((each) => `${each.name}: ${describe(each)}`).join('; ');
    return judged(id, { atMs, followers, webhooks: await webhooks() }, detail);
  }

  async #readFollowers(): Promise<readonly FollowerStatus[] | undefined> {
    const store = await this.#find('store');
    if (store === undefined) return undefined;
    const nothing = async () => undefined;
    const none = async () => [];
    return await followerStatus({
      store,
      view: (await this.#find('view')) ?? {
        ...{ checkpoint: nothing, parked: none, building: nothing },
        countParked: async () => 0,
      },
      subscriptions: (await this.#find('subscriptions')) ?? { status: nothing, parked: none },
      coordination: (await this.#find('coordination')) ?? { holder: nothing, live: none },
      clock: this.#clock,
    });
  }

  async #noStore(): Promise<Finding> {
    const isMissing = (await this.#engines.state('store')) === 'missing';
    return right(isMissing ? 'there is no store yet' : 'not looked at: the check store says why');
  }
}
