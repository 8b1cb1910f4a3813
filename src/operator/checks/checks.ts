import { textOf } from '../../base/config/setting.ts';
import { MAKE_SPACE } from '../../base/disk/disk.ts';
import type { Engine } from '../../service/engines/engine.ts';
import { ACCOUNT_CHECKS } from './accounts.ts';
import { act, type Check, type DoctorCheck, type Problem, right, wrong } from './check.ts';
import { checkCertificate, checkClientCertificate, checkConfiguration } from './configuration.ts';
import { checkDataDirectory, lookAtFiles } from './data-directory.ts';
import type { Facts } from './facts.ts';
import { FOLLOWER_CHECKS } from './followers.ts';
import { checkEngine, checkMail, checkProxy } from './servers.ts';
import { STORE_CHECKS } from './store.ts';

const SHOW_CONFIG = 'fuel config show';
/** A process can't keep these up while the disk refuses commits or an engine does not answer. */
const FOLLOWING = ['accounts_up_to_date', 'subscription_connected'];

const MACHINE_CHECKS: readonly Check[] = [
  {
    name: 'configuration',
    madeBy: 'doctor',
    isCause: true,
    remedy: SHOW_CONFIG,
    find: checkConfiguration,
  },
  {
    name: 'data-directory',
    madeBy: 'doctor',
    isCause: true,
    remedy: 'look at the owner and the mode of the data directory: fuel config show',
    find: ({ config }) => checkDataDirectory(config.FUEL_DATA_DIR, () => lookAtFiles(config)),
  },
  {
    name: 'disk-space',
    isCause: true,
    alerts: ['FuelDiskFull', 'FuelDiskFills', 'FuelDiskLow'],
    remedy: 'look at the disk of the data directory: df',
    async find(facts) {
      const disk = await facts.disk();
      if (disk === undefined || (disk.refusal === undefined && !disk.isLow)) return right(disk?.text ?? '');
      return wrong(disk.refusal ?? disk.text, MAKE_SPACE, { id: 'disk' });
    },
  },
  {
    name: 'readiness',
    madeBy: 'overview',
    alerts: ['FuelEngineUnavailable', 'FuelNotReady'],
    find: (facts) => unready(facts, (name) => !FOLLOWING.includes(name)),
  },
  {
    name: 'connections',
    madeBy: 'overview',
    isConsequence: true,
    find: (facts) => unready(facts, (name) => FOLLOWING.includes(name)),
  },
  {
    name: 'certificate',
    alerts: ['FuelCertificateEndsSoon', 'FuelCertificateEnds'],
    settings: ['FUEL_TLS'],
    remedy: SHOW_CONFIG,
    find: checkCertificate,
  },
  {
    name: 'mail-server',
    madeBy: 'doctor',
    settings: ['FUEL_SMTP_URL'],
    remedy: 'start the mail server, or correct FUEL_SMTP_URL',
    find: ({ config }) => checkMail(config.FUEL_SMTP_URL),
  },
  {
    name: 'webhook-certificate',
    madeBy: 'doctor',
    alerts: ['FuelWebhookCertificateEndsSoon', 'FuelWebhookCertificateEnds'],
    settings: ['FUEL_WEBHOOK_CLIENT_CERT', 'FUEL_WEBHOOK_CLIENT_KEY'],
    remedy: SHOW_CONFIG,
    isInUse: ({ env }) => Boolean(textOf(env, 'FUEL_WEBHOOK_CLIENT_CERT')),
    find: checkClientCertificate,
  },
  {
    name: 'webhook-proxy',
    madeBy: 'doctor',
    settings: ['FUEL_WEBHOOK_PROXY'],
    alerts: ['FuelWebhookProxyFails'],
    remedy: 'start the proxy, or correct FUEL_WEBHOOK_PROXY',
    isInUse: ({ env }) => Boolean(textOf(env, 'FUEL_WEBHOOK_PROXY')),
    find: ({ config: { FUEL_WEBHOOK_PROXY: proxy } }) =>
      proxy === undefined ? right('') : checkProxy(proxy),
  },
];

/** All checks, in the order in which doctor lists them; with one for each kind of server. */
export function checksOf(servers: readonly Engine[]): readonly Check[] {
  return [
    ...MACHINE_CHECKS,
    ...servers.map(serverCheck),
    ...STORE_CHECKS,
    ...FOLLOWER_CHECKS,
    ...ACCOUNT_CHECKS,
  ];
}

function serverCheck({ check, name, setting, title }: Engine): DoctorCheck {
  return {
    name: check,
    madeBy: 'doctor',
    isCause: true,
    settings: [setting],
    remedy: `start ${title}, or correct ${setting}`,
    isInUse: ({ env, engines }) =>
      engines.remote.some((engine) => engine.name === name) || Boolean(textOf(env, setting)),
    find({ engines }) {
      const used = engines.remote.find((engine) => engine.name === name);
      return used === undefined ? right('another engine is selected') : checkEngine(used);
    },
  };
}

async function unready({ readiness, engines }: Facts, isWanted: (name: string) => boolean) {
  const { checks = {} } = (await readiness()) ?? {};
  const names = Object.keys(checks).filter(
    (name) => checks[name] === false && name !== 'disk' && isWanted(name),
  );
  const problems = names.map((name): Problem => {
    const isEngine = engines.remote.some((engine) => engine.name === name);
    const text = isEngine ? `${name} cannot be reached` : `this process is not ready: ${name} does not hold`;
    return act(text, { id: `check-${name}`, words: ['doctor'] });
  });
  return { detail: '', problems };
}
