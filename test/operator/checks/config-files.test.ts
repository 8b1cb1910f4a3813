import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../../src/engines/engines.ts';
import { faultsOfNamed } from '../../../src/operator/checks/configuration.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const faultsOf = (env: Readonly<Record<string, string>>) =>
  faultsOfNamed(loadConfig({ FUEL_DATA_DIR: temporaryFolder(), ...env }, 'command'));

describe('a connection string', () => {
  test.each([
    ['MONGODB_URL', 'mongodb://ada:pepper@host/?retryWrite=true', 'option retrywrite is not supported'],
    ['MONGODB_URL', 'mongodb://host:99999/', 'Unable to parse host:99999 with URL'],
    ['MONGODB_URL', 'mongodb://ada:pep@per@host/', 'Invalid connection string'],
    ['MONGODB_URL', 'mongodb://ada:pepper@', expect.any(String)],
    [
      'EVENTSTORE_URL',
      'esdb://ada:pepper@host?tsl=true',
      expect.stringMatching(/^option tsl is not supported: there are c/),
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tls=perhaps',
      'Unexpected "perhaps" at position 16, expected true or false',
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tlsVerifyCert=false',
      expect.stringContaining('name the authority with tlsCAFile'),
    ],
    [
      'EVENTSTORE_URL',
      'esdb://host?tlsCAFile=/nowhere',
      'Failed to load certificate file. File was not found',
    ],
    ['EVENTSTORE_URL', 'esdb://ada:pepper:2@host:7:8', expect.any(String)],
    ['EVENTSTORE_URL', 'esdb://ada:pep%per@host', expect.any(String)],
  ])(
    'that the driver rejects is a fault of the setting, which does not show the password: %s=%s',
    async (name, url, why) => {
      const [fault, ...others] = await faultsOf({ [name]: url });
      expect(others).toEqual([]);
      const [setting, ...said] = (fault ?? '').split(': ');
      expect([setting, said.join(': ')]).toEqual([name, why]);
      expect(fault).not.toMatch(/pep/);
    },
  );

  test.each([
    ['MONGODB_URL', 'mongodb://ada:pepper@a,b:27018/?replicaSet=rs0&tls=true'],
    [
      'EVENTSTORE_URL',
      'esdb+discover://ada:pepper@a,b:2114?tls=false&tlsVerifyCert=false&Keep-Alive_timeout=900',
    ],
  ])('that the driver takes is none, and nobody is asked: %s=%s', async (name, url) => {
    expect(await faultsOf({ [name]: url })).toEqual([]);
  });

  test('that is wrong is reported by config show, and stops each command that needs it with one line', async () => {
    const { fuel } = commandLine({ MONGODB_URL: 'mongodb://ada:pepper@host/?foo=1' }, { hasStore: true });
    const shown = await fuel('config', 'show', '--json');
    expect([shown.code, shown.json.faults]).toEqual([1, ['MONGODB_URL: option foo is not supported']]);
    const { code, stderr } = await fuel('delivery', 'list');
    expect([code, stderr]).toEqual([1, 'fuel: CONFIG_INVALID: MONGODB_URL: option foo is not supported\n']);
  });

  test('is never printed by a driver', async () => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue(undefined);
    onTestFinished(() => warned.mockRestore());
    await faultsOf({ EVENTSTORE_URL: 'esdb://ada:pepper@host?tls=false&tlsVerifyCert=false' });
    await faultsOf({ EVENTSTORE_URL: 'esdb://ada:pepper@host?tls=false&unknown=1' });
    expect(warned).not.toHaveBeenCalled();
  });
});
