import { describe, expect, test } from 'vitest';
import { opened } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed, linesOf } from '../../../support/transactions/e2e-samples.ts';

const OTHER = { driver: { id: 78, name: 'Lee Moss', mobile_number: null } };
const WHY = ['--account', '7', '--reason', 'asked for'];

async function imported() {
  const line = commandLine();
  await line.append('account-7', [opened()]);
  const path = line.file('some.jsonl', linesOf([confirmed(1), confirmed(2), confirmed(3, OTHER)]));
  expect((await line.fuel('transaction', 'import', path)).code).toBe(0);
  return { ...line, path };
}

describe('fuel driver', () => {
  test('find lists the transactions of a driver by id, name or number, and says where nothing is found', async () => {
    const { fuel } = await imported();
    const { lines } = await fuel('driver', 'find', 'SAM', '--json');
    expect(lines.map(({ id, driver }) => [id, driver])).toEqual([
      [1, 77],
      [2, 77],
    ]);
    expect(lines[0]).toMatchObject({
      account: 7,
      name: 'Sam Field',
      mobile_number: '+15550100',
      deliveries: 0,
    });
    expect((await fuel('driver', 'find', '78', '--account', '7', '--json')).lines).toMatchObject([{ id: 3 }]);
    expect((await fuel('driver', 'find', '15550100', '--json')).lines).toHaveLength(2);
    expect((await fuel('driver', 'find', '555010', '--json')).lines).toEqual([]); // an id
    expect((await fuel('driver', 'find', '\u200f-')).code).toBe(2);
    const nobody = await fuel('driver', 'find', 'nobody');
    expect([nobody.code, nobody.stdout, nobody.stderr]).toEqual([
      0,
      '',
      'no transaction has such a driver\n',
    ]);
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

  test('redact counts in a dry run, changes all of it once, and leaves no byte in the files', async () => {
    const { fuel, done, withEngines, path } = await imported();
    expect(await done('driver', 'redact', '77', ...WHY, '--dry-run')).toEqual({
      events: 2,
      rows: 0,
      deliveries: 0,
    });
    const { code, stdout, stderr } = await fuel('driver', 'redact', '77', ...WHY);
    expect([code, stdout]).toEqual([0, 'events 2, rows 0, deliveries 0\n']);
    expect(stderr).toMatch(
      /^Not covered: .* backups made before \d{4}-.*\. If you restore one of those, redact again\.\n$/,
    );
    const streams = await withEngines((engines) =>
      engines.store().readStreams(['transaction-1', 'transaction-3']),
    );
    expect(JSON.stringify(streams)).toMatch(
      /"driver":\{"id":77,"name":"REDACTED","mobile_number":null\}.*Lee Moss/,
    );
    expect(await done('driver', 'redact', '77', ...WHY)).toEqual({ events: 0, rows: 0, deliveries: 0 });
    expect((await fuel('transaction', 'import', path, '--json')).json).toMatchObject({
      unchanged: 3,
      refused: 0,
    });
    expect((await fuel('driver', 'redact', '99', ...WHY)).stderr).toContain(
      'no transaction of account 7 has the driver 99',
    );
  });

  test('redact names a file that still holds the name, and ends with 1', async () => {
    const { fuel, file } = await imported();
    const data = JSON.stringify(confirmed(1).data);
    const copy = file('data/copied.json', data);
    const { code, stderr } = await fuel('driver', 'redact', '77', ...WHY);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${copy}: may still contain the name: it holds the record`),
    ]);
  });
});
