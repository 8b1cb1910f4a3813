import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/operator/cli/program.ts';
import { folder, fuelProcess as fuel } from '../support/service/commands.ts';
import { productionEnv } from '../support/service/production.ts';
import { ServiceProcess } from '../support/service/service-process.ts';

/** Every command of the design that belongs to the pull channel. */
const COMMANDS = [
  'serve',
  ...['open', 'list', 'show', 'integration', 'contact', 'profile', 'group', 'corporate'].map(
    (verb) => `account ${verb}`,
  ),
  ...['issue', 'list', 'show', 'off', 'on', 'allow', 'rate-limit', 'driver-mobile'].map(
    (verb) => `key ${verb}`,
  ),
  ...['import', 'show', 'erase'].map((verb) => `transaction ${verb}`),
  ...['status', 'rebuild', 'parked', 'parked show', 'parked retry'].map((verb) => `projection ${verb}`),
  'audit',
  'store backup',
  'config show',
];

describe('fuel', () => {
  const dataDir = join(folder(), 'data');

  it.each([[], ['account'], ['account', 'open'], ['projection', 'parked']])(
    'prints help on standard output for --help at the level %j, and changes nothing',
    async (...level) => {
      const { code, stdout, stderr } = await fuel([...level, '--help'], { dataDir });
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain(['Usage: fuel', ...level].join(' '));
      expect(stdout).toMatch(/Example:\n\s+\S+/);
      expect(existsSync(dataDir)).toBe(false);
    },
  );

  it('has every command of the design, and on every level a summary and an example', () => {
    const seen: string[] = [];
    const visit = (command: Command, path: string): void => {
      const help: string[] = [];
      command.configureOutput({ writeOut: (text) => void help.push(text) }).outputHelp();
      seen.push(path);
      expect([path, command.description() !== '', /Example:\n\s+\S+/.test(help.join(''))]).toEqual([
        path,
        true,
        true,
      ]);
      for (const below of command.commands) visit(below, `${path} ${below.name()}`.trim());
    };
    visit(createProgram(), '');
    expect(seen).toEqual(expect.arrayContaining(COMMANDS));
  });

  it('prints its version', async () => {
    const { code, stdout } = await fuel(['--version'], { dataDir });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/)]);
  });

  it.each([[['serv']], [['account', 'opn']], [['--jsn']], [['serve', '--role', 'cook']], [['serve', 'now']]])(
    'ends with 2 for: %j',
    async (args) => {
      const { code, stdout, stderr } = await fuel(args, { dataDir });
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(/\w{3,}/);
    },
  );
});

describe('fuel config show', () => {
  const show = (env: Record<string, string>, ...args: string[]) =>
    fuel(['config', 'show', ...args], { dataDir: folder(), env });

  it('shows every setting with its value and source', async () => {
    const { code, json } = await show({ FUEL_LISTEN: '0.0.0.0:443' }, '--json');
    expect(code).toBe(0);
    const shown = new Map<string, { value: unknown; source: string }>(
      json.settings.map((setting: { name: string }) => [setting.name, setting]),
    );
    expect(shown.get('FUEL_LISTEN')).toMatchObject({ value: '0.0.0.0:443', source: 'environment' });
    expect(shown.get('FUEL_ENVIRONMENT')).toMatchObject({ value: 'staging', source: 'default' });
    for (const name of [
      ...['FUEL_DATA_DIR', 'FUEL_TLS_CERT', 'FUEL_TLS_KEY', 'FUEL_TLS', 'FUEL_OPS_LISTEN', 'FUEL_EDGE'],
      ...[
        'FUEL_EDGE_TOKEN',
        'FUEL_DIRECTORY_MAX_AGE',
        'FUEL_TRUSTED_PROXIES',
        'EVENTSTORE_URL',
        'MONGODB_URL',
      ],
      ...['MONGODB_DATABASE', 'FUEL_MASTER_KEY', 'FUEL_IMAGES_ENDPOINT', 'FUEL_IMAGES_REGION'],
      ...[
        'FUEL_IMAGES_BUCKET',
        'FUEL_IMAGES_ACCESS_KEY_ID',
        'FUEL_IMAGES_SECRET_ACCESS_KEY',
        'FUEL_SMTP_URL',
      ],
      ...['FUEL_MAIL_FROM', 'FUEL_OPERATOR_EMAIL', 'FUEL_WEBHOOK_ALLOW_PRIVATE', 'FUEL_WEBHOOK_RETRY_DELAYS'],
      ...['FUEL_WEBHOOK_CA', 'FUEL_DELIVERY_RETENTION_DAYS', 'FUEL_LOG_LEVEL'],
    ]) {
      expect(shown.has(name)).toBe(true);
    }
  });

  it('masks secrets, also where they are not valid', async () => {
    const production = productionEnv({ certPath: '/c', keyPath: '/k', pem: '' });
    const secrets = {
      ...production,
      FUEL_EDGE: 'external',
      FUEL_EDGE_TOKEN: 'edge-token-0123456789,short',
      MONGODB_URL: 'mongodb://user:mongo-password@db/',
      EVENTSTORE_URL: 'esdb://user:event-password@db/',
    };
    for (const args of [[], ['--json']]) {
      const { code, stdout, stderr } = await show(secrets, ...args);
      expect([code, stderr]).toEqual([1, '']); // its certificate is not there
      for (const hidden of [
        ...['image-secret-of-production', 'smtp-password', 'edge-token-0123456789', 'mongo-password'],
        ...['event-password', production.FUEL_MASTER_KEY ?? ''],
      ]) {
        expect(stdout).not.toContain(hidden);
      }
    }
  });

  it('works when the configuration is invalid, and names every fault', async () => {
    const wrong = {
      FUEL_ENVIRONMENT: 'test',
      FUEL_LISTEN: 'nowhere',
      FUEL_DIRECTORY_MAX_AGE: '60',
      FUEL_TRUSTED_PROXIES: '10.0.0.0/99',
      FUEL_MASTER_KEY: 'short',
      FUEL_TLS_CERT: '/only/one',
      FUEL_LOG_LEVEL: 'loud',
    };
    for (const args of [[], ['--json']]) {
      const { code, stdout } = await show(wrong, ...args);
      expect(code).toBe(1);
      const faults =
        args.length > 0
          ? JSON.parse(stdout).faults.join('\n')
          : stdout.slice(stdout.indexOf('not valid for'));
      for (const name of Object.keys(wrong)) expect(faults).toContain(name);
    }
    const { code, stdout, stderr } = await fuel(['serve'], { dataDir: folder(), env: wrong });
    expect([code, stdout]).toEqual([1, '']);
    for (const name of Object.keys(wrong)) expect(stderr).toContain(name);
  });

  it('checks files as fuel serve does, before anything is started or created', async () => {
    const dataDir = folder();
    const broken = join(dataDir, 'broken.pem');
    writeFileSync(broken, '-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n');
    writeFileSync(join(dataDir, 'master.key'), 'short\n');
    const env = { FUEL_TLS_CERT: broken, FUEL_TLS_KEY: '/nowhere/key.pem', FUEL_WEBHOOK_CA: broken };
    const shown = await fuel(['config', 'show', '--json'], { dataDir, env });
    const served = await fuel(['serve'], { dataDir, env });
    expect([shown.code, shown.json.valid, served.code, served.stdout]).toEqual([1, false, 1, '']);
    expect(shown.json.faults).toHaveLength(3);
    for (const fault of shown.json.faults) expect(served.stderr).toContain(fault);
    for (const name of ['FUEL_TLS_CERT', 'FUEL_WEBHOOK_CA', 'master.key'])
      expect(served.stderr).toContain(name);
    expect(readdirSync(dataDir).sort()).toEqual(['broken.pem', 'master.key']);
  });

  it('names the setting that an unknown variable resembles', async () => {
    const env = { FUEL_ENVIROMENT: 'production', FUEL_LUNCH: 'noon' };
    const { code, json } = await show(env, '--json');
    expect([code, json.unknown]).toEqual([
      0,
      [
        { name: 'FUEL_ENVIROMENT', resembles: 'FUEL_ENVIRONMENT' },
        { name: 'FUEL_LUNCH', resembles: null },
      ],
    ]);
    expect((await show(env)).stdout).toContain(
      'FUEL_ENVIROMENT is no setting: did you mean FUEL_ENVIRONMENT?',
    );
    const service = new ServiceProcess({ env: { FUEL_ENVIROMENT: 'production' } });
    service.launch();
    await service.logged((line) => line.name === 'FUEL_ENVIROMENT' && line.level === 40);
    expect(await service.stop()).toBe(0);
  });
});
