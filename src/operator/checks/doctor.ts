import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { readDisk } from '../../base/disk/disk.ts';
import { registry as REGISTRY, type Registry } from '../../engines/engines.ts';
import { configuredPhotoStore } from '../../pull/images/presign.ts';
import { generatedCertificate } from '../../pull/server/certificate.ts';
import { verifyMailServer } from '../../push/notices/mailer.ts';
import type { Engines, ServerKind } from '../../service/engines/engines.ts';
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

type Env = Readonly<Record<string, string | undefined>>;

interface Check {
  readonly check: string;
  /** Without which it can't be made: it is not where one of them is faulty. */
  readonly needs: readonly string[];
  /** What to do where it fails or takes too long. */
  readonly remedy: string;
  readonly work: () => Finding | Promise<Finding>;
}

/**
 * Looks at everything that the service depends on, and says what is wrong and what to do. It makes no store and changes
 * nothing, works with an invalid configuration, and takes some seconds whatever does not answer. No secret is in it.
 */
export async function examine(env: Env, clock: Clock, registry = REGISTRY): Promise<CheckResult[]> {
  const { config, faulty, secrets } = registry.inspectConfig(env);
  const engines = await registry.openEngines(config, clock);
  const { servers } = registry;
  const causes = [...servers.map(({ check }) => check), 'data-directory', 'disk-space'];
  const repair = `first repair what the checks ${causes.slice(0, -1).join(', ')} and ${causes.at(-1)} name`;
  try {
    const checks = [
      ...checksOfMachine(env, { config, clock, registry }),
      ...checksOfEngines(engines, { clock, servers }),
      ...checksOfStores(new StoreChecks(engines, config, clock), { repair, servers }),
    ];
    const results = await Promise.all(checks.map((check) => resultOf(check, faulty)));
    return withoutFollowing(results, { causes, repair }).map((result) => withoutSecrets(result, secrets));
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
function withoutFollowing(
  results: readonly CheckResult[],
  { causes, repair }: { readonly causes: readonly string[]; readonly repair: string },
): CheckResult[] {
  const wrongs = results.filter(({ check, ok }) => !ok && causes.includes(check)).map(({ check }) => check);
  return results.map((result) =>
    wrongs.length > 0 && result.do === repair ? { check: result.check, ...notChecked(wrongs) } : result,
  );
}

function withoutSecrets(result: CheckResult, secrets: readonly string[]): CheckResult {
  const masked = (text: string): string =>
    secrets
      .filter(({ length }) => length >= MIN_SECRET_CHARACTERS)
      .reduce((masking, secret) => masking.replaceAll(secret, '********'), text);
  return { ...result, detail: masked(result.detail), do: result.do === null ? null : masked(result.do) };
}

function checksOfMachine(
  env: Env,
  {
    config,
    clock,
    registry,
  }: { readonly config: Config; readonly clock: Clock; readonly registry: Registry },
): Check[] {
  const { FUEL_DATA_DIR: dataDir, FUEL_TLS_CERT: cert, FUEL_TLS_KEY: key } = config;
  const files = cert !== undefined && key !== undefined ? { cert, key } : generatedCertificate(config);
  const isSample = env.FUEL_IMAGES_ENDPOINT === undefined || env.FUEL_IMAGES_ENDPOINT === '';
  return [
    {
      check: 'configuration',
      needs: [],
      remedy: SHOW_CONFIG,
      work: () => checkConfiguration(env, config, registry),
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

function checksOfEngines(
  { remote }: Engines,
  { clock, servers }: { readonly clock: Clock; readonly servers: readonly ServerKind[] },
): Check[] {
  const ofServers = servers.map(
    (kind): Check => ({
      check: kind.check,
      needs: [kind.setting],
      remedy: `start ${kind.title}, or correct ${kind.setting}`,
      work() {
        const used = remote.find(({ name }) => name === kind.name);
        return used === undefined ? embeddedEngine(kind.holds) : checkEngine(used);
      },
    }),
  );
  return [
    ...ofServers,
    {
      check: 'clocks',
      needs: servers.map(({ setting }) => setting),
      remedy: 'timedatectl status, on every machine',
      work: () => checkClocks(remote, () => clock.now()),
    },
  ];
}

/** `repair`: what to do where one of them fails since what it needs is wrong. */
function checksOfStores(
  stores: StoreChecks,
  { repair, servers }: { readonly repair: string; readonly servers: readonly ServerKind[] },
): Check[] {
  const on = (check: string, work: Check['work'], more: readonly string[] = []): Check => ({
    check,
    needs: [...servers.map(({ setting }) => setting), 'FUEL_ENVIRONMENT', ...more],
    remedy: repair,
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
