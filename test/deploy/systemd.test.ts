import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { showConfig } from '../../src/engines/engines.ts';
import { ROOT } from './compose-file.ts';

const UNITS = ['fuel.service', 'fuel@.service', 'fuel-api@.service'];
const PROGRAM = '/opt/fuel-integration';
const settings = showConfig({}).settings.map(({ name }) => name);
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

const textOf = (unit: string) => readFileSync(join(ROOT, 'deploy/systemd', unit), 'utf8');
const valuesOf = (unit: string, name: string) =>
  [...textOf(unit).matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

describe.each(UNITS)('the unit %s', (unit) => {
  it('runs a command that the program has, and is started again whatever ended it', () => {
    const [command = ''] = valuesOf(unit, 'ExecStart');
    expect(command).toMatch(/^\/opt\/fuel-integration\/bin\/fuel serve(?: --role (?:%i|api))?$/);
    expect(valuesOf(unit, 'Restart')).toEqual(['always']);
    expect(valuesOf(unit, 'StartLimitIntervalSec')).toEqual(['0']);
  });

  it('sets nothing but settings, and leaves the secret ones to a file', () => {
    const names = valuesOf(unit, 'Environment').flatMap((line) =>
      line.split(' ').map((each) => each.split('=')[0] ?? ''),
    );
    expect(names.filter((name) => !settings.includes(name))).toEqual(['XDG_CACHE_HOME']);
    expect(valuesOf(unit, 'EnvironmentFile')[0]).toBe('/etc/fuel/fuel.env');
  });

  it('bounds its memory, and leaves it the calls of a service without those that change the machine', () => {
    expect(valuesOf(unit, 'MemoryMax')).toEqual(['2G']);
    expect(valuesOf(unit, 'SystemCallFilter')).toEqual(['@system-service', '~@privileged']);
  });

  it('gives what is under way more than the 10 s that it may take', () => {
    expect(Number(valuesOf(unit, 'TimeoutStopSec')[0])).toBeGreaterThan(10);
  });

  it.runIf(hasSystemd)('is what systemd takes, without a warning', () => verifyUnit(unit));
});

describe('the socket fuel-api.socket', () => {
  it('is passed to each process of the API, and starts one where none runs', () => {
    expect(valuesOf('fuel-api@.service', 'Sockets')).toEqual(['fuel-api.socket']);
    expect(valuesOf('fuel-api.socket', 'Service')).toEqual(['fuel-api@1.service']);
  });

  it('differs from one role a process in nothing but its port and its settings', () => {
    const own =
      /^(?:#.*|Description=.*|Sockets=.*|ExecStart=.*|EnvironmentFile=\/etc\/fuel\/(?:api-)?%i\.env)\n/gm;
    expect(textOf('fuel-api@.service').replace(own, '')).toBe(textOf('fuel@.service').replace(own, ''));
  });
});

describe.each(['backup', 'doctor'])('the timer fuel-%s', (name) => {
  const unit = `fuel-${name}.service`;

  it('starts a unit that runs commands of the program, with the settings of the service', () => {
    expect(textOf(`fuel-${name}.timer`)).toMatch(/^OnCalendar=\S.*\nRandomizedDelaySec=/m);
    const commands = valuesOf(unit, 'ExecStart').flatMap(
      (line) => line.match(/bin\/fuel (?:\w[\w-]* ?){1,2}/g) ?? [],
    );
    const expected = {
      backup: ['bin/fuel store backup '],
      doctor: ['bin/fuel doctor'],
    };
    expect(commands).toEqual(expected[name as 'backup' | 'doctor']);
    expect(valuesOf(unit, 'EnvironmentFile')).toEqual(valuesOf('fuel.service', 'EnvironmentFile'));
    expect(valuesOf(unit, 'Environment')).toEqual(valuesOf('fuel.service', 'Environment'));
    expect(valuesOf(unit, 'Type')).toEqual(['oneshot']);
  });

  it.runIf(hasSystemd)('is what systemd takes, without a warning', () => {
    for (const each of [unit, `fuel-${name}.timer`]) verifyUnit(each);
  });
});

describe('the timer fuel-checkpoint', () => {
  it('mails the newest checkpoint of the operations listener, and nothing where there is none', () => {
    const [command = ''] = valuesOf('fuel-checkpoint.service', 'ExecStart');
    const port = showConfig({}).settings.find(({ name }) => name === 'FUEL_OPS_LISTEN')?.value;
    expect(command).toContain(`$$(curl --silent --show-error --fail http://${port}/checkpoint) && `);
    expect(command).toMatch(/\| mail -s "[^"]+" "\$\$CHECKPOINT_TO"'$/);
    expect(textOf('fuel-checkpoint.timer')).toMatch(/^OnCalendar=\S.*\nRandomizedDelaySec=/m);
  });

  it.runIf(hasSystemd)('is what systemd takes, without a warning', () => {
    for (const each of ['fuel-checkpoint.service', 'fuel-checkpoint.timer']) verifyUnit(each);
  });
});

function verifyUnit(unit: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'fuel-systemd-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // Its program is elsewhere when the tests run. Everything else is judged as it is.
  const program = join(folder, 'fuel');
  mkdirSync(join(program, 'bin'), { recursive: true });
  copyFileSync(join(ROOT, 'bin/fuel'), join(program, 'bin/fuel'));
  const path = join(folder, unit);
  writeFileSync(path, textOf(unit).replaceAll(PROGRAM, program));
  const started = unit.replace('.timer', '.service');
  writeFileSync(join(folder, started), textOf(started).replaceAll(PROGRAM, program));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
}
