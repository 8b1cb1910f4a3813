import { existsSync } from 'node:fs';
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
    expect(stderr).toContain('transaction 9 was never recorded: there is nothing to erase');
    expect(await left()).toEqual(['transaction-2']);
    expect((await eventsOf('operations')).at(-1)).toMatchObject({
      type: 'TransactionErased',
      data: { transaction_id: 3, account_id: 7, reason: 'court order' },
      metadata: { actor: 'Ada', command: 'fuel transaction erase' },
    });
    expect((await fuel('transaction', 'show', '1')).stderr).toBe('fuel: REFUSED: transaction 1 was erased\n');
  });

  test('is refused before anything is erased without a confirmation, an id, a reason, or with a line that is no id', async () => {
    const { fuel, file, left } = await imported();
    const wrong = file('ids.txt', '1\nx\n');
    for (const [args, message] of [
      [[...ERASE, '1'], /--yes/],
      [[...ERASE, '--yes'], /Name the ids/],
      [[...ERASE, '--yes', '--file', wrong], /Line 2 of .*ids\.txt is not a transaction id/],
      [['transaction', 'erase', '1', '--yes', '--reason', '  '], /must not be empty/],
      [['transaction', 'erase', '1', '--yes'], /--reason/],
    ] as const)
      expect(await fuel(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(await left()).toHaveLength(3);
  });

  test('says which files still contain it, and what to do', async () => {
    const { fuel, file, eventsOf } = await imported();
    const [event] = await eventsOf('transaction-1');
    const copy = file('data/copied.jsonl', JSON.stringify(event?.data));
    const { code, json, stderr } = await fuel(...ERASE, '1', '--yes', '--json');
    const remains = [{ file: copy, reason: 'it holds the record' }];
    expect([code, json]).toEqual([1, { id: 1, erased: true, remains }]);
    expect(stderr).toMatch(/copied\.jsonl may still contain it.*Run the same command again/s);
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
