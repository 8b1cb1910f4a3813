import { userInfo } from 'node:os';
import { beforeAll, describe, expect, it } from 'vitest';
import { startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  importEvents,
  linesOf,
  openAccount,
  voided,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

describe('fuel audit', () => {
  const service = new ServiceProcess();
  let prefix = '';

  const audit = async (...args: string[]) => (await service.done(['audit', '--json', ...args])).lines;
  const types = async (...args: string[]) => (await audit(...args)).map(({ type }) => type);

  beforeAll(async () => {
    await service.start();
    ({ prefix } = await openAccount(service));
    await service.done(['account', 'open', '8', '--name', 'Eight']);
    await importEvents(service, [confirmed(501), confirmed(502, { account_id: 8 }), voided(501)]);
    await service.done(['key', 'off', prefix, '--actor', 'Ada Lovelace']);
  });

  it('lists everything in the order of the log, one JSON object per line', async () => {
    const lines = await audit();
    expect(lines[0]).toMatchObject({ stream: 'operations', revision: 0, type: 'StoreNamed' });
    for (const line of lines) {
      expect(Object.keys(line)).toEqual([
        ...['stream', 'revision', 'at', 'type', 'actor', 'os_user', 'command', 'correlation_id', 'data'],
      ]);
      expect(line.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    expect(lines.map(({ at }) => at)).toEqual(lines.map(({ at }) => at).sort());
    expect(lines.filter(({ stream }) => stream === 'account-7').map(({ revision }) => revision)).toEqual([
      0, 1, 2, 3, 4,
    ]);
  });

  it('shows who did it and by which command', async () => {
    expect(await audit('--type', 'KeySwitchedOff')).toMatchObject([
      {
        stream: 'account-7',
        type: 'KeySwitchedOff',
        actor: 'Ada Lovelace',
        command: 'fuel key off',
        data: { account_id: 7, prefix },
      },
    ]);
    const [opened] = await audit('--account', '8', '--type', 'AccountOpened');
    expect([opened.actor, opened.command]).toEqual([
      process.env.SUDO_USER ?? userInfo().username,
      'fuel account open',
    ]);
  });

  it('filters by account, transaction, type and time', async () => {
    expect(await types('--account', '7')).toEqual([
      'AccountOpened',
      'IntegrationEnabled',
      'ChargingProfileSet',
      'KeyIssued',
      'TransactionConfirmed',
      'TransactionVoided',
      'KeySwitchedOff',
    ]);
    expect(await types('--transaction', '501')).toEqual(['TransactionConfirmed', 'TransactionVoided']);
    expect(await types('--account', '8', '--transaction', '501')).toEqual([]);
    expect(await types('--type', 'AccountOpened')).toEqual(['AccountOpened', 'AccountOpened']);
    const all = await audit();
    const at: string = all.find(({ type }) => type === 'TransactionVoided').at;
    const within = all.filter((line) => line.at >= at).map(({ type }) => type);
    expect(await types('--since', at)).toEqual(within);
    expect(await types('--until', at)).toEqual(all.filter((line) => line.at <= at).map(({ type }) => type));
    expect(await types('--since', '2099-01-01T00:00:00Z')).toEqual([]);
  });

  it('ends with 2 for an invalid time or id', async () => {
    for (const args of [
      ['--since', 'today'],
      ['--account', 'x'],
      ['--transaction', '1.5'],
    ]) {
      expect((await service.fuel(['audit', ...args])).code).toBe(2);
    }
  });

  it('follows until it is interrupted, and then ends with 0', async () => {
    const args = ['audit', '--json', '--follow', '--transaction', '503'];
    const following = startFuel(args, { dataDir: service.dataDir });
    await importEvents(service, [confirmed(503), confirmed(504)]);
    await until(async () => following.stdout().includes('TransactionConfirmed'), 15_000);
    await service.done(['transaction', 'import', '-'], { stdin: linesOf([voided(503), voided(504)]) });
    await until(async () => following.stdout().includes('TransactionVoided'), 15_000);
    following.child.kill('SIGINT');
    const { code, lines } = await following.result;
    expect([code, lines.map(({ type }) => type)]).toEqual([0, ['TransactionConfirmed', 'TransactionVoided']]);
  });
});
