import type { Clock } from '../../base/clock.ts';
import { type Config, inspectConfig } from '../../base/config/config.ts';
import { readDisk } from '../../base/disk/disk.ts';
import { openEngines } from '../../engines/engines.ts';
import { configuredPhotoStore } from '../../pull/images/presign.ts';
import { generatedCertificate } from '../../pull/server/certificate.ts';
import { verifyMailServer } from '../../push/notices/mailer.ts';
import { EVENT_STORE } from '../../service/engines/engine-health.ts';
import type { Engines } from '../../service/engines/engines.ts';
import { checkCertificate } from './certificate.ts';
import { type CheckResult, type Finding, notChecked, right, within, wrong } from './check.ts';
import { checkConfiguration } from './configuration.ts';
import { checkDataDirectory, lookAtFiles } from './data-directory.ts';
import { checkClocks, checkEngine, embeddedEngine } from './engines.ts';
import { checkPhotos } from './photos.ts';
import { StoreChecks } from './store-checks.ts';
import { judged } from './table.ts';

const LIMIT_MS = 8_000;
/** Of the photo store, whose check then names it. */
const ANSWER_MS = 5_000;
const MIN_SECRET_CHARACTERS = 4;
const SHOW_CONFIG = 'fuel config show';
/** What the checks of the stores need. */
const NEEDED_BY_STORES = ['EVENTSTORE_URL', 'MONGODB_URL', 'FUEL_ENVIRONMENT'] as const;
const CAUSES = ['event-store', 'mongodb', 'data-directory', 'disk-space'];
const REPAIR_CAUSES = 'first repair what the checks event-store, mongodb, data-directory and disk-space name';

type Env = Readonly<Record<string, string | undefined>>;

interface Check {
  readonly check: string;
  /** Without which it can't be made: it is not where one of them is faulty. */
  readonly needs: readonly (keyof Config)[];
  /** What to do where it fails or takes too long. */
  readonly remedy: string;
  readonly work: () => Finding | Promise<Finding>;
}

/**
 * Looks at everything that the service depends on, and says what is wrong and what to do. It makes no store and changes
 * nothing, works with an invalid configuration, and takes some seconds whatever does not answer. No secret is in it.
 */
export async function examine(env: Env, clock: Clock): Promise<CheckResult[]> {
  const { config, faulty, secrets } = inspectConfig(env);
  const engines = await openEngines(config, clock);
  try {
    const checks = [
      ...checksOfMachine(env, config, clock),
      ...checksOfEngines(engines, clock),
      ...checksOfStores(config, engines, clock),
    ];
    const results = await Promise.all(checks.map((check) => resultOf(check, faulty)));
    return withoutFollowing(results).map((result) => withoutSecrets(result, secrets));
  } finally {
    await engines.close();
  }
}

async function resultOf(
  { check, needs, remedy, work }: Check,
  faulty: ReadonlySet<string>,
): Promise<CheckResult> {
  const missing = needs.filter((name) => faulty.has(name));
  if (missing.length === 0) return { check, ...(await within(LIMIT_MS, remedy, work)) };
  return { check, ...wrong(`not checked: ${missing.join(', ')} is not valid`, SHOW_CONFIG) };
}

/** A check that failed since what it needs is wrong is no second alarm. */
function withoutFollowing(results: readonly CheckResult[]): CheckResult[] {
  const wrongs = results.filter(({ check, ok }) => !ok && CAUSES.includes(check)).map(({ check }) => check);
  return results.map((result) =>
    wrongs.length > 0 && result.do === REPAIR_CAUSES
      ? { check: result.check, ...notChecked(wrongs) }
      : result,
  );
}

function withoutSecrets(result: CheckResult, secrets: readonly string[]): CheckResult {
  const masked = (text: string): string =>
    secrets
      .filter(({ length }) => length >= MIN_SECRET_CHARACTERS)
      .reduce((masking, secret) => masking.replaceAll(secret, '********'), text);
  return { ...result, detail: masked(result.detail), do: result.do === null ? null : masked(result.do) };
}

function checksOfMachine(env: Env, config: Config, clock: Clock): Check[] {
  const { FUEL_DATA_DIR: dataDir, FUEL_TLS_CERT: cert, FUEL_TLS_KEY: key } = config;
  const files = cert !== undefined && key !== undefined ? { cert, key } : generatedCertificate(config);
  const isSample = env.FUEL_IMAGES_ENDPOINT === undefined || env.FUEL_IMAGES_ENDPOINT === '';
  return [
    {
      check: 'configuration',
      needs: [],
      remedy: SHOW_CONFIG,
      work: () => checkConfiguration(env, config),
    },
    {
      check: 'data-directory',
      needs: [],
      remedy: `ls -la ${dataDir}`,
      work: () => checkDataDirectory(dataDir, () => lookAtFiles(config)),
    },
    {
      check: 'disk-space',
      needs: [],
      remedy: `df ${dataDir}`,
      async work() {
        const disk = await readDisk(dataDir);
        return judged('disk-space', { atMs: clock.now(), disk }, disk.text);
      },
    },
    {
      check: 'certificate',
      needs: ['FUEL_TLS'],
      remedy: SHOW_CONFIG,
      work: () =>
        checkCertificate({
          isTerminated: config.FUEL_TLS === 'terminated',
          files,
          isGenerated: cert === undefined || key === undefined,
          nowMs: clock.now(),
        }),
    },
    {
      check: 'mail-server',
      needs: ['FUEL_SMTP_URL'],
      remedy: 'start the mail server, or correct FUEL_SMTP_URL',
      work: () => checkMail(config.FUEL_SMTP_URL),
    },
    {
      check: 'photo-store',
      needs: ['FUEL_IMAGES_ENDPOINT'],
      remedy: 'correct FUEL_IMAGES_ENDPOINT',
      work: () =>
        checkPhotos(configuredPhotoStore(config), {
          isSample,
          nowMs: clock.now(),
          signal: AbortSignal.timeout(ANSWER_MS),
        }),
    },
  ];
}

/** Whether the mail server takes a connection, with the credentials that it was given. */
export async function checkMail(url: string | undefined): Promise<Finding> {
  if (url === undefined)
    return right('FUEL_SMTP_URL is not set: nobody is mailed, the log names each notice');
  const { host } = new URL(url);
  try {
    await verifyMailServer(url);
    return right(`${host} takes mails`);
  } catch (error) {
    return wrong(`${host}: ${(error as Error).message}`, 'start the mail server, or correct FUEL_SMTP_URL');
  }
}

function checksOfEngines({ remote }: Engines, clock: Clock): Check[] {
  const named = (wanted: (typeof remote)[number]['name']) => remote.find(({ name }) => name === wanted);
  const eventStore = named(EVENT_STORE);
  const mongodb = named('mongodb');
  const engine = (found: typeof eventStore, what: string) =>
    found === undefined ? embeddedEngine(what) : checkEngine(found);
  return [
    {
      check: 'event-store',
      needs: ['EVENTSTORE_URL'],
      remedy: 'start EventStoreDB or KurrentDB, or correct EVENTSTORE_URL',
      work: () => engine(eventStore, 'events'),
    },
    {
      check: 'mongodb',
      needs: ['MONGODB_URL'],
      remedy: 'start MongoDB, or correct MONGODB_URL',
      work: () => engine(mongodb, 'view and delivery log'),
    },
    {
      check: 'clocks',
      needs: ['EVENTSTORE_URL', 'MONGODB_URL'],
      remedy: 'timedatectl status, on every machine',
      work: () => checkClocks(remote, () => clock.now()),
    },
  ];
}

function checksOfStores(config: Config, engines: Engines, clock: Clock): Check[] {
  const stores = new StoreChecks(engines, config, clock);
  const on = (check: string, work: Check['work'], more: readonly (keyof Config)[] = []): Check => ({
    check,
    needs: [...NEEDED_BY_STORES, ...more],
    remedy: REPAIR_CAUSES,
    work,
  });
  return [
    on('store', () => stores.store(), ['FUEL_MASTER_KEY']),
    on('accounts', () => stores.accounts()),
    on('master-keys', () => stores.masterKeys(), ['FUEL_MASTER_KEY']),
    on('parked-events', () => stores.parked()),
    on('consumers', () => stores.consumers()),
    on('lag', () => stores.lag()),
    on('contacts', () => stores.contacts()),
    on('webhooks', () => stores.webhooks()),
    on('corporates', () => stores.corporates()),
  ];
}
