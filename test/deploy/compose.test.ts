import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { sealKeysIn } from '../../src/base/config/seal-keys.ts';
import { ROLES, type Role } from '../../src/base/config/settings.ts';
import { loadConfig, showConfig } from '../../src/engines/engines.ts';
import {
  type ComposeFile,
  type ComposeService,
  composeFile,
  environmentOf,
  ROOT,
  variablesIn,
} from './compose-file.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const file = composeFile();
const services = Object.entries(file.services);
const ours = services.filter(([, { image }]) => image.startsWith('fuel-integration:'));
const ENGINES = ['eventstore', 'mongodb'];
/** Those of services that give their volume to a user and become it. MongoDB's looks through a used volume as root. */
const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  mongodb: ['CHOWN', 'DAC_READ_SEARCH', 'SETGID', 'SETUID'],
  photos: ['CHOWN', 'SETGID', 'SETUID'],
};
const settings = showConfig({}).settings.map(({ name }) => name);
const secrets = parseEnv(readFileSync(makeEnv(), 'utf8')) as Record<string, string>;

/** Runs deploy/make-env.sh as a new user does. Returns the path of the file that it writes. */
function makeEnv(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fuel-env-'));
  folders.push(folder);
  mkdirSync(join(folder, 'deploy'));
  const script = join(folder, 'deploy/make-env.sh');
  copyFileSync(join(ROOT, 'deploy/make-env.sh'), script);
  execFileSync(script, { stdio: 'pipe' });
  return join(folder, '.env');
}

const serviceNamed = (name: string): ComposeService => {
  const service = file.services[name];
  if (service === undefined) throw new Error(`there is no service ${name}`);
  return service;
};

const roleOf = ({ command = [] }: ComposeService): Role => {
  const role = ROLES.find((each) => each === command.at(-1));
  if (role === undefined) throw new Error(`${command.join(' ')} names no role`);
  return role;
};

/** Returns the services whose environment has a setting. */
const thoseWith = (setting: string): string[] =>
  ours.filter(([, service]) => setting in environmentOf(service, secrets)).map(([name]) => name);

describe('docker-compose.yml', () => {
  it.each(services)('lets %s do nothing but its work', (name, service) => {
    expect(service).toMatchObject({ restart: 'unless-stopped', cap_drop: ['ALL'], read_only: true });
    expect(service).toMatchObject({ security_opt: ['no-new-privileges:true'], tmpfs: ['/tmp'] });
    expect(service.mem_limit).toMatch(/^[12]g$/);
    expect(service.cap_add).toEqual(CAPABILITIES[name]);
  });

  it('gives a secret to those alone who use it', () => {
    expect(thoseWith('FUEL_IMAGES_SECRET_ACCESS_KEY')).toEqual(['api', 'webhooks']);
    expect(thoseWith('FUEL_SMTP_URL')).toEqual(['notices']);
  });

  it('passes on a certificate of receivers to what sends, `fuel webhook test` among it', () => {
    expect(thoseWith('FUEL_WEBHOOK_CA')).toEqual(ours.map(([name]) => name));
  });

  it.each(ours)('gives %s settings that the service starts with, in production too', (_, service) => {
    const environment = environmentOf(service, secrets);
    const config = loadConfig(environment, 'serve');
    expect(config.FUEL_MASTER_KEY).toHaveLength(1);
    const production = { ...environment, FUEL_ENVIRONMENT: 'production' };
    const certificate = { FUEL_TLS_CERT: '/tls/tls.crt', FUEL_TLS_KEY: '/tls/tls.key' };
    expect(() => loadConfig({ ...production, ...certificate }, 'serve', [roleOf(service)])).not.toThrow();
    expect(Object.keys(environment).filter((name) => !settings.includes(name))).toEqual([]);
  });

  it('takes from .env only what is a setting', () => {
    const names = variablesIn(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'));
    expect(names).toContain('FUEL_MASTER_KEY');
    expect(names.filter((name) => !settings.includes(name))).toEqual([]);
  });

  it('runs every role, the projector with a standby and two dispatchers', () => {
    const roles = ours.map(([, service]) => ({
      role: roleOf(service),
      replicas: service.deploy?.replicas ?? 1,
    }));
    expect(roles.map(({ role }) => role).sort()).toEqual([...ROLES].sort());
    const several = roles.filter(({ replicas }) => replicas === 2).map(({ role }) => role);
    expect(several.sort()).toEqual(['projector', 'webhooks']);
  });

  it('builds the image once, under the version of package.json, and never pulls it', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(new Set(ours.map(([, { image }]) => image))).toEqual(new Set([`fuel-integration:${version}`]));
    expect(ours.filter(([, { build }]) => build !== undefined).map(([name]) => name)).toEqual(['api']);
    expect(ours.map(([, service]) => service)).toEqual(
      ours.map(() => expect.objectContaining({ pull_policy: 'never' })),
    );
  });

  it('pins every other image to a version', () => {
    const tags = services.map(([, { image }]) => image.split(':')[1] ?? 'none');
    expect(tags.filter((tag) => !/\d+\.\d+\.?\d*/.test(tag) && !/^\d+\.\d+$/.test(tag))).toEqual([]);
  });

  it('has the same versions in deploy/digests.yml, each with its digest', () => {
    const fixed: ComposeFile = parse(readFileSync(join(ROOT, 'deploy/digests.yml'), 'utf8'));
    const images = Object.entries(fixed.services).map(
      ([name, { image }]) => [name, image.split('@')] as const,
    );
    expect(images.map(([name]) => name)).toEqual(['mail', 'photos']);
    for (const [name, [tag, digest]] of images) {
      expect(tag).toBe(serviceNamed(name).image);
      expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    }
  });

  it('starts a service only when both engines are healthy, and says of every service when it is', () => {
    for (const [name, service] of ours) {
      expect([name, service.depends_on]).toEqual([
        name,
        Object.fromEntries(ENGINES.map((engine) => [engine, { condition: 'service_healthy' }])),
      ]);
    }
    expect(services.filter(([, { healthcheck }]) => healthcheck === undefined)).toEqual([]);
  });

  it('connects to the engines, the mail server and the photo store that it starts', () => {
    const { EVENTSTORE_URL, MONGODB_URL, FUEL_IMAGES_ENDPOINT } = environmentOf(serviceNamed('api'), secrets);
    const { FUEL_SMTP_URL } = environmentOf(serviceNamed('notices'), secrets);
    const port = serviceNamed('eventstore').environment?.EVENTSTORE_NODE_PORT;
    expect(EVENTSTORE_URL).toBe(`esdb://eventstore:${port}?tls=false`);
    expect(MONGODB_URL).toBe('mongodb://mongodb:27017/?replicaSet=rs0');
    const mongodb = serviceNamed('mongodb');
    expect(mongodb.command).toEqual(expect.arrayContaining(['--replSet', 'rs0']));
    expect(mongodb.healthcheck?.test.at(-1)).toContain(
      "_id: 'rs0', members: [{ _id: 0, host: 'mongodb:27017' }]",
    );
    expect(file.services).toHaveProperty(new URL(FUEL_SMTP_URL ?? '').hostname);
    const photos = new URL(FUEL_IMAGES_ENDPOINT ?? '');
    expect(serviceNamed('photos').ports).toEqual([`127.0.0.1:${photos.port}:${photos.port}`]);
  });

  it('gives the photo store the bucket and keys that links are signed for', () => {
    const ours = environmentOf(serviceNamed('api'), secrets);
    expect(environmentOf(serviceNamed('photos'), secrets)).toEqual({
      S3_BUCKET: ours.FUEL_IMAGES_BUCKET,
      AWS_ACCESS_KEY_ID: ours.FUEL_IMAGES_ACCESS_KEY_ID,
      AWS_SECRET_ACCESS_KEY: ours.FUEL_IMAGES_SECRET_ACCESS_KEY,
    });
  });

  it('lets nobody outside reach the engines, and only this machine the rest', () => {
    expect(file.networks.engines).toEqual({ internal: true });
    for (const engine of ENGINES) {
      expect([serviceNamed(engine).networks, serviceNamed(engine).ports]).toEqual([['engines'], undefined]);
    }
    const published = services.flatMap(([, { ports = [] }]) => ports);
    expect(published.length).toBeGreaterThan(0);
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  it('declares every volume and network that it uses, and uses each', () => {
    const volumes = services.flatMap(([, service]) => (service.volumes ?? []).map((v) => v.split(':')[0]));
    const networks = services.flatMap(([, service]) => service.networks ?? []);
    expect(new Set(volumes)).toEqual(new Set(Object.keys(file.volumes)));
    expect(new Set(networks)).toEqual(new Set(Object.keys(file.networks)));
  });

  it('holds no secret, and names what makes those that are missing', () => {
    const texts = services.flatMap(([, { environment = {} }]) => Object.entries(environment));
    const secret = texts.filter(([name]) => /MASTER_KEY|SEAL_KEY|SECRET|TOKEN|PASSWORD/.test(name));
    expect(secret.length).toBe(2 * ours.length + 3); // all have the master key and the seal key, three that of the photo store
    expect(secret.filter(([, text]) => !/^\$\{\w+:\?run deploy\/make-env\.sh once\}$/.test(text))).toEqual(
      [],
    );
    expect(texts.filter(([, text]) => /:\/\/[^/]*@/.test(text))).toEqual([]);
    expect(() => environmentOf(serviceNamed('api'), {})).toThrow('run deploy/make-env.sh once');
  });
});

describe('deploy/make-env.sh', () => {
  it('makes secrets of full length that only the owner reads, others every time', () => {
    const again = makeEnv();
    expect(statSync(again).mode & 0o777).toBe(0o600);
    const other = parseEnv(readFileSync(again, 'utf8'));
    expect(Object.keys(other).sort()).toEqual([
      'FUEL_IMAGES_SECRET_ACCESS_KEY',
      'FUEL_MASTER_KEY',
      'FUEL_SEAL_KEY',
    ]);
    expect(sealKeysIn(other.FUEL_SEAL_KEY ?? '')).toHaveLength(1);
    expect(Buffer.from(other.FUEL_MASTER_KEY ?? '', 'base64')).toHaveLength(32);
    expect(other.FUEL_IMAGES_SECRET_ACCESS_KEY).toMatch(/^[0-9a-f]{48}$/);
    expect(Object.values(other).filter((value) => Object.values(secrets).includes(value ?? ''))).toEqual([]);
  });

  it('never writes over secrets that are in use', () => {
    const path = makeEnv();
    const before = readFileSync(path, 'utf8');
    const { status, stderr } = spawnSync(join(path, '../deploy/make-env.sh'), { encoding: 'utf8' });
    expect([status, readFileSync(path, 'utf8')]).toEqual([1, before]);
    expect(stderr).toContain('was not changed');
  });

  it('writes what git does not take', () => {
    expect(readFileSync(join(ROOT, '.gitignore'), 'utf8').split('\n')).toContain('.env');
  });
});
