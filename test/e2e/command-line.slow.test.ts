import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandUnknownOpts as Command } from '@commander-js/extra-typings';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/operator/cli/program.ts';
import { folder, fuelProcess as fuel } from '../support/service/commands.ts';
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
  ...['status', 'rebuild', 'parked', 'parked retry'].map((verb) => `projection ${verb}`),
  'audit',
  'store backup',
  'config show',
];

describe('fuel', () => {
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
});

describe('fuel config show', () => {
  const show = (env: Record<string, string>, ...args: string[]) =>
    fuel(['config', 'show', ...args], { dataDir: folder(), env });

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
      'FUEL_ENVIROMENT is not a setting: did you mean FUEL_ENVIRONMENT?',
    );
    const service = new ServiceProcess({ env: { FUEL_ENVIROMENT: 'production' } });
    service.launch();
    await service.logged((line) => line.name === 'FUEL_ENVIROMENT' && line.level === 40);
    expect(await service.stop()).toBe(0);
  });
});
