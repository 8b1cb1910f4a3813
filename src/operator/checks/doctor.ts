import type { Directory } from '../../accounts/directory/fold/directory.ts';
import { findMasterKeys, otherKeyFile } from '../../accounts/master-key.ts';
import { recordedMasterKeys } from '../../accounts/store-binding.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { textOf } from '../../base/config/setting.ts';
import { readDisk } from '../../base/disk/disk.ts';
import { trustedTime } from '../../base/time/trusted-clock.ts';
import { registry as REGISTRY, type Registry } from '../../engines/engines.ts';
import { configuredPhotoStore } from '../../pull/images/presign.ts';
import type { Engines } from '../../service/engines/engines.ts';
import { MAX_BACKLOG_COUNTED } from '../../service/ops/shared-figures.ts';
import { checkContacts, checkCorporates, failingWebhooks, MAX_FAILING, webhooksOf } from './accounts.ts';
import { type CheckResult, type Finding, notChecked, right, within, wrong } from './check.ts';
import { checkClocks } from './clocks.ts';
import { checkCertificate, checkConfiguration } from './configuration.ts';
import { checkDataDirectory, lookAtFiles } from './data-directory.ts';
import { checkMasterKeys } from './master-keys.ts';
import { checkProof } from './proof.ts';
import { checkEngine, checkMail, checkPhotos } from './servers.ts';
import { checkStore } from './store.ts';
import { storesOf } from './stores.ts';
import { type CheckId, type Facts, judged } from './table.ts';

const LIMIT_MS = 8_000;
const MIN_SECRET_CHARACTERS = 4;
const SHOW_CONFIG = 'fuel config show';

type Env = Readonly<Record<string, string | undefined>>;
type Work = () => Finding | Promise<Finding>;

interface Check {
  readonly check: string;
  /** Settings without which it can't be made: it is not where one of them is faulty. */
  readonly needs?: readonly string[];
  /** What to do where it fails or takes too long. */
  readonly remedy: string;
  readonly work: Work;
}

interface Doctor {
  readonly env: Env;
  readonly config: Config;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly engines: Engines;
}

/**
 * Looks at everything that the service depends on, and says what is wrong and what to do. It makes no store and changes
 * nothing, works with an invalid configuration, and takes some seconds whatever does not answer. No secret is in it.
 */
export async function examine(env: Env, clock: Clock, registry = REGISTRY): Promise<CheckResult[]> {
  const { config, faulty, secrets } = registry.inspectConfig(env);
  const engines = await registry.openEngines(config, clock);
  const doctor = { env, config, clock, registry, engines };
  const causes = [...registry.servers.map(({ check }) => check), 'data-directory', 'disk-space'];
  const repair = `first repair what the checks ${causes.slice(0, -1).join(', ')} and ${causes.at(-1)} name`;
  const resultOf = async ({ check, needs = [], remedy, work }: Check): Promise<CheckResult> => {
    const missing = needs.filter((name) => faulty.has(name));
    if (missing.length === 0) return { check, ...(await within(LIMIT_MS, remedy, work)) };
    return { check, ...wrong(`not checked: ${missing.join(', ')} is not valid`, SHOW_CONFIG) };
  };
  try {
    const checks = [
      ...checksOfMachine(doctor),
      ...checksOfServers(doctor),
      ...checksOfStores(doctor, repair),
    ];
    const results = await Promise.all(checks.map(resultOf));
    const wrongs = results.filter(({ check, ok }) => !ok && causes.includes(check)).map(({ check }) => check);
    // A check that failed since what it needs is wrong is no second alarm.
    const isFollowing = ({ do: remedy }: CheckResult): boolean => wrongs.length > 0 && remedy === repair;
    return results.map((result) =>
      isFollowing(result) ? { check: result.check, ...notChecked(wrongs) } : withoutSecrets(result, secrets),
    );
  } finally {
    await engines.close();
  }
}

function withoutSecrets(result: CheckResult, secrets: readonly string[]): CheckResult {
  const masked = (text: string): string =>
    secrets
      .filter(({ length }) => length >= MIN_SECRET_CHARACTERS)
      .reduce((masking, secret) => masking.replaceAll(secret, '********'), text);
  return { ...result, detail: masked(result.detail), do: result.do === null ? null : masked(result.do) };
}

function checksOfMachine({ env, config, clock, registry }: Doctor): Check[] {
  const { FUEL_DATA_DIR: dataDir, FUEL_SMTP_URL: smtpUrl } = config;
  return [
    {
      check: 'configuration',
      remedy: SHOW_CONFIG,
      work: () => checkConfiguration(env, config, registry),
    },
    {
      check: 'data-directory',
      remedy: `ls -la ${dataDir}`,
      work: () => checkDataDirectory(dataDir, () => lookAtFiles(config)),
    },
    {
      check: 'disk-space',
      remedy: `df ${dataDir}`,
      async work() {
        return judged('disk-space', { atMs: clock.now(), disk: await readDisk(dataDir) });
      },
    },
    {
      check: 'certificate',
      needs: ['FUEL_TLS'],
      remedy: SHOW_CONFIG,
      work: () => checkCertificate(config, clock.now()),
    },
    {
      check: 'mail-server',
      needs: ['FUEL_SMTP_URL'],
      remedy: 'start the mail server, or correct FUEL_SMTP_URL',
      work: () => checkMail(smtpUrl),
    },
    {
      check: 'photo-store',
      needs: ['FUEL_IMAGES_ENDPOINT'],
      remedy: 'correct FUEL_IMAGES_ENDPOINT',
      work: () =>
        checkPhotos(
          textOf(env, 'FUEL_IMAGES_ENDPOINT') ? configuredPhotoStore(config) : undefined,
          clock.now(),
        ),
    },
  ];
}

function checksOfServers({ engines, clock, registry: { servers } }: Doctor): Check[] {
  const { node, sqlite } = process.versions;
  const ofServers = servers.map(
    ({ check, name, setting, title, holds, ports }): Check => ({
      check,
      needs: [setting],
      remedy: `start ${title}, or correct ${setting}`,
      work() {
        const used = engines.remote.find((engine) => engine.name === name);
        if (used) return checkEngine(used);
        const other = engines.remote.find(({ serves }) => serves.some((port) => ports.includes(port)));
        if (other) return right(`not selected: ${other.title} is`);
        return right(`${holds}: embedded, SQLite ${sqlite} of Node ${node}`);
      },
    }),
  );
  return [
    ...ofServers,
    {
      check: 'clocks',
      needs: servers.map(({ setting }) => setting),
      remedy: 'chronyc tracking, on every machine',
      async work() {
        const isThere = (await engines.state('coordination').catch(() => 'missing')) === 'current';
        const trustedAtMs = isThere
          ? await trustedTime(engines.coordination()).catch(() => undefined) // another check names the engine
          : undefined;
        const trusted = judged('clocks', { atMs: clock.now(), trustedAtMs });
        if (!trusted.ok) return trusted;
        return checkClocks(engines.remote, () => clock.now());
      },
    },
  ];
}

/** `repair`: what to do where one of them fails since what it needs is wrong. */
function checksOfStores({ engines, config, clock, registry }: Doctor, repair: string): Check[] {
  const stores = storesOf(engines, config, clock);
  const noStore = async (): Promise<Finding> => {
    const isMissing = (await engines.state('store')) === 'missing';
    return right(isMissing ? 'there is no store yet' : 'not looked at: the check store says why');
  };
  const webhooksIn = (all: Directory) => [...webhooksOf(all, config.FUEL_ENVIRONMENT)];
  const ofDirectory = (look: (all: Directory) => Finding | Promise<Finding>) => async () => {
    const all = await stores.directory();
    return all === undefined ? noStore() : look(all);
  };
  const ofTable = (id: CheckId, gather: (all: Directory) => Promise<Omit<Facts, 'atMs'>>) =>
    ofDirectory(async (all) => judged(id, { atMs: clock.now(), ...(await gather(all)) }));
  const ofFollowers = (id: CheckId) =>
    ofTable(id, async (all) => {
      // Where it is full no process can report what it works on.
      const disk = engines.embedded.length > 0 ? await readDisk(config.FUEL_DATA_DIR) : undefined;
      return { disk, followers: await stores.followers(), webhooks: webhooksIn(all).length };
    });
  const webhooks = ofTable('webhooks', async (all) => {
    const keys = webhooksIn(all).map(({ key }) => key);
    const queue = await stores.find('queue');
    return {
      webhooks: keys.length,
      disabled: keys.filter(({ webhook }) => webhook?.disabled != null).map(({ prefix }) => prefix),
      failing: failingWebhooks((await queue?.failingLanes(MAX_FAILING)) ?? [], all),
      backlog: await queue?.backlog({ nowMs: clock.now(), limit: MAX_BACKLOG_COUNTED }),
    };
  });
  const works: Readonly<Record<string, Work>> = {
    store: () => checkStore(stores),
    accounts: ofTable('accounts', async (all) => {
      const accounts = [...all.accounts()];
      const unreadable = accounts.filter((each) => each.unreadable !== null).map(({ id }) => id);
      return { accounts: accounts.length, unreadable };
    }),
    proof: async () => {
      const store = await stores.find('store');
      return store === undefined ? noStore() : checkProof(store, clock.now());
    },
    'master-keys': ofDirectory(async (all) => {
      const store = await stores.find('store');
      const recorded = store === undefined ? [] : await recordedMasterKeys(store);
      return checkMasterKeys(all, findMasterKeys(config)?.identities() ?? [], {
        recorded,
        otherFile: otherKeyFile(config),
      });
    }),
    'parked-events': ofFollowers('parked-events'),
    consumers: ofFollowers('consumers'),
    lag: ofFollowers('lag'),
    contacts: ofDirectory((all) => checkContacts(webhooksIn(all), config.FUEL_OPERATOR_EMAIL)),
    webhooks: async () =>
      (await engines.state('queue')) === 'damaged' ? notChecked(['data-directory']) : webhooks(),
    corporates: ofDirectory(async (all) => {
      const view = await stores.find('view');
      return view === undefined ? right('there is no view yet') : checkCorporates(all, view, clock.now());
    }),
  };
  const settings = [...registry.servers.map(({ setting }) => setting), 'FUEL_ENVIRONMENT'];
  return Object.entries(works).map(([check, work]) => ({
    check,
    needs: ['store', 'master-keys'].includes(check) ? [...settings, 'FUEL_MASTER_KEY'] : settings,
    remedy: repair,
    work,
  }));
}
