import { existsSync, rmSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { describeWithMongodb } from '../../../support/engines/mongodb.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { commandLineOnEngines } from '../../../support/service/command-line-on-engines.ts';
import { confirmed, linesOf } from '../../../support/transactions/e2e-samples.ts';

const ERASE = ['transaction', 'erase', '--reason', 'court order'];

async function imported() {
  const line = commandLine();
  const path = line.file('some.jsonl', linesOf([confirmed(1), confirmed(2), confirmed(3)]));
  await line.done('transaction', 'import', path);
  const left = () =>
    line.withEngines(async (engines) => {
      const streams = await engines.store().readStreams([1, 2, 3].map((id) => `transaction-${id}`));
      return streams.flatMap(([event]) => event?.stream ?? []);
    });
  return { ...line, left };
}

describe('fuel transaction erase', () => {
  test('takes several ids and a file of them, names those it refuses, and records who erased the rest, and why', async () => {
    const { fuel, file, left, eventsOf } = await imported();
    const ids = file('ids.txt', '3\n\n9\n');
    const { code, lines, stderr } = await fuel(
      ...[...ERASE, '1', '--file', ids, '--yes', '--json', '--actor', 'Ada'],
    );
    expect([code, lines]).toEqual([1, [1, 3].map((id) => ({ id, erased: true }))]);
    expect(stderr).toContain('transaction 9 was never recorded, so there is nothing to erase');
    expect(await left()).toEqual(['transaction-2']);
    expect((await eventsOf('operations')).at(-1)).toMatchObject({
      type: 'TransactionErased',
      data: { transaction_id: 3, account_id: 7, reason: 'court order' },
      metadata: { actor: 'Ada', command: 'fuel transaction erase' },
    });
    expect((await fuel('transaction', 'show', '1')).stderr).toBe('fuel: Transaction 1 was erased\n');
  });

  test('is refused before anything is erased without a confirmation, an id, a reason, or with a line that is no id', async () => {
    const { fuel, file, left } = await imported();
    const wrong = file('ids.txt', '1\nx\n');
    for (const [args, message] of [
      [[...ERASE, '1'], /--yes/],
      [[...ERASE, '--yes'], /Give the ids/],
      [[...ERASE, '--yes', '--file', wrong], /Line 2 of .*ids\.txt is not a transaction id/],
      [['transaction', 'erase', '1', '--yes', '--reason', '  '], /--reason must not be empty/],
      [['transaction', 'erase', '1', '--yes'], /--reason/],
    ] as const)
      expect(await fuel(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(await left()).toHaveLength(3);
  });

  test('leaves copies to whoever made them, and says so', async () => {
    const { fuel, file, eventsOf } = await imported();
    const [event] = await eventsOf('transaction-1');
    file('data/old-copy.bin', JSON.stringify(event?.data));
    const { code, json, stderr } = await fuel(...ERASE, '1', '--yes', '--json');
    expect([code, json]).toEqual([0, { id: 1, erased: true }]);
    expect(stderr).toMatch(/Not covered: .* copies that somebody made.*Remove copies yourself/);
  });

  test('ends with 1 as often as a file of the service may still contain it, and with 0 once none does', async () => {
    const { fuel, file } = await imported();
    const former = file('data/transactions-9.db', '');
    const remains = [{ file: former, reason: 'the service no longer uses the file. Remove it' }];
    for (const _time of ['first', 'second']) {
      const { code, json, stderr } = await fuel(...ERASE, '1', '--yes', '--json');
      expect([code, json]).toEqual([1, { id: 1, erased: true, remains }]);
      expect(stderr).toContain(
        `${former} may still contain the record: the service no longer uses the file. Remove it\n`,
      );
    }
    rmSync(former);
    expect((await fuel(...ERASE, '1', '--yes')).code).toBe(0);
  });
});

describeWithMongodb('with engines and a master key', () => {
  it('a transaction is erased where there is no data directory, and once more', async () => {
    const { fuel, done, file, eventsOf } = await commandLineOnEngines();
    await done('transaction', 'import', file('lines.jsonl', linesOf([confirmed(501)])));
    for (const _time of ['first', 'second']) {
      const erase = ['transaction', 'erase', '501', '--reason', 'asked for', '--yes', '--json'];
      const { code, json, stderr } = await fuel(...erase);
      const erased = { id: 501, erased: true };
      expect([code, json, stderr]).toEqual([0, erased, expect.stringContaining('scavenge')]);
    }
    expect(await eventsOf('transaction-501')).toEqual([]);
    expect(existsSync(process.env.FUEL_DATA_DIR ?? '')).toBe(false);
  });
});
