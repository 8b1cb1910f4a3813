import { describe, expect, test } from 'vitest';
import { opened } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed, linesOf } from '../../../support/transactions/e2e-samples.ts';

const OTHER = { driver: { id: 78, name: 'Lee Moss', mobile_number: null } };
const WHY = ['--account', '7', '--reason', 'asked for'];

async function imported() {
  const line = commandLine();
  await line.hasServed();
  await line.append('account-7', [opened()]);
  const path = line.file('some.jsonl', linesOf([confirmed(1), confirmed(2), confirmed(3, OTHER)]));
  expect((await line.fuel('transaction', 'import', path)).code).toBe(0);
  return line;
}

describe('fuel driver', () => {
  test('find lists the transactions of a driver, and says where nothing is found', async () => {
    const { fuel } = await imported();
    const { lines } = await fuel('driver', 'find', 'SAM', '--account', '7', '--json');
    expect(lines.map(({ id }) => id)).toEqual([1, 2]);
    const sam = { driver: 77, name: 'Sam Field', mobile_number: '+15550100' };
    expect(lines[0]).toMatchObject({ id: 1, account: 7, ...sam, deliveries: 0 });
    expect((await fuel('driver', 'find', '555010', '--json')).lines).toEqual([]); // an id
    expect((await fuel('driver', 'find', '\u200f-')).code).toBe(2);
    expect(await fuel('driver', 'find', 'nobody')).toMatchObject({
      ...{ code: 0, stdout: '', stderr: 'no transaction has such a driver\n' },
    });
    expect((await fuel('driver', 'find', '77', '--account', '8')).code).toBe(1);
  });

  test.each([
    ['José Quint', 'Jose\u0301 Quint', null],
    ['Ana Field', 'Ana\u00a0Field', null],
    ['سامي نور', 'سامي \u200fنور\u200e', null],
    ['+905550100001', 'Lee Moss', '+90 555 010 00 01'],
  ])('find %s finds what looks like it', async (text, name, mobile_number) => {
    const { append, done } = commandLine();
    await append('transaction-1', [confirmed(1, { driver: { id: 801, name, mobile_number } })]);
    expect(await done('driver', 'find', text)).toMatchObject({ id: 1, name });
  });

  test('redact counts in a dry run, and says what it does not cover', async () => {
    const { fuel, done } = await imported();
    const counts = { events: 2, rows: 0, deliveries: 0 };
    expect(await done('driver', 'redact', '77', ...WHY, '--dry-run')).toEqual(counts);
    expect(await fuel('driver', 'redact', '77', ...WHY)).toMatchObject({
      ...{ code: 0, stdout: 'events 2, rows 0, deliveries 0\n' },
      stderr: expect.stringMatching(
        /^Not covered: .* if you restore a backup, run the same command again\.\n$/,
      ),
    });
    expect((await fuel('driver', 'redact', '99', ...WHY)).stderr).toContain(
      'no transaction of account 7 has the driver 99',
    );
  });

  test('redact ends with 1 while a file of the service may still hold the name', async () => {
    const { fuel, file } = await imported();
    const former = file('data/transactions-9.db', '');
    for (const _time of ['first', 'second']) {
      const { code, stderr } = await fuel('driver', 'redact', '77', ...WHY);
      const named = `${former}: may still contain the name: the service no longer uses it: remove it\n`;
      expect([code, stderr]).toEqual([1, expect.stringContaining(named)]);
    }
  });
});
