import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  cancelled,
  confirmed,
  type EventLine,
  external,
  idsOf,
  linesOf,
  openAccount,
  SEPTEMBER,
  voided,
} from '../support/transactions/e2e-samples.ts';
import { withValue } from '../support/transactions/mutations.ts';

const changed = (event: EventLine, path: (string | number)[], value: unknown): EventLine => ({
  ...event,
  data: withValue(event.data, path, value),
});

describe('fuel transaction import', () => {
  const service = new ServiceProcess();
  let key = '';

  const importText = (text: string | Buffer, ...args: string[]) =>
    service.fuel(['transaction', 'import', '-', '--json', ...args], { stdin: text });
  const visible = async () =>
    idsOf((await service.get(`/transactions?${SEPTEMBER}&limit=100`, { key })).body);

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service, { structure: true }));
  });

  it('records a file once, however often it is imported', async () => {
    const file = join(folder(), 'september.jsonl');
    writeFileSync(
      file,
      linesOf([confirmed(101), external(102), confirmed(103), voided(103), cancelled(102)]),
    );
    const first = await service.fuel(['transaction', 'import', file, '--json', '--wait']);
    expect([first.code, first.stdout, first.stderr]).toEqual([
      0,
      '{"recorded":5,"unchanged":0,"refused":0}\n',
      '',
    ]);
    const second = await service.fuel(['transaction', 'import', file, '--json']);
    expect([second.code, second.json]).toEqual([0, { recorded: 0, unchanged: 5, refused: 0 }]);
    expect(await visible()).toEqual([101]);
  });

  it('names each bad line with its number and reason, and records the rest', async () => {
    const { type, data } = confirmed(110);
    const bad: string[] = [
      'not json',
      '[]',
      JSON.stringify({ type: 'TransactionGuessed', data }),
      JSON.stringify({ type }),
      ...[
        changed(confirmed(110), ['fuel', 'amount'], '98.541'),
        changed(confirmed(110), ['created_at'], '2026-02-30T00:00:00Z'),
        changed(external(110), ['station', 'id'], 88),
        voided(101, { account_id: 8 }),
        voided(999),
        cancelled(103),
        confirmed(101, { odometer_reading: 1 }),
        external(101),
      ].map((event) => JSON.stringify(event)),
      JSON.stringify(confirmed(110)).replace('"transaction_id":110', '"transaction_id":9007199254740992'),
    ];
    const lines = bad.flatMap((line, index) => [line, JSON.stringify(confirmed(200 + index))]);
    const { code, json, stdout, stderr } = await importText(lines.join('\n'), '--wait');
    expect(json).toEqual({ recorded: bad.length, unchanged: 0, refused: bad.length });
    expect([code, stdout.split('\n')]).toEqual([1, [expect.any(String), '']]);
    const numbers = stderr
      .trim()
      .split('\n')
      .map((line) => Number(/\b(\d+)\b.{10,}/.exec(line)?.[1]))
      .sort((a, b) => a - b);
    expect(numbers).toEqual(bad.map((_, index) => 2 * index + 1));
    expect(await visible()).toEqual(expect.arrayContaining(bad.map((_, index) => 200 + index)));
  });

  it('accepts what the events allow: fewer decimals, offsets, finer fractions, unknown fields, refunds', async () => {
    const refund = confirmed(301, {
      created_at: '2026-09-05T12:00:00.1239876+02:00',
      correction_reference_id: 101,
      fuel: {
        type: { id: 2, name: 'Дизель 柴油 "x"\n' },
        liters: '-45',
        price_per_liter: '2.1',
        amount: '-98.5',
      },
      fees: { total_fees: '-1.5', total_vat: '0', total_amount: '-100.27' },
      fuel_consumption: null,
      batch: { anything: true },
    });
    expect((await importText(linesOf([refund]), '--wait')).json).toEqual({
      recorded: 1,
      unchanged: 0,
      refused: 0,
    });
    const { text } = await service.get(
      '/transactions?from=2026-09-05T10:00:00.123Z&to=2026-09-05T10:00:00.123Z',
      { key },
    );
    expect(text).toContain('"created_at":"2026-09-05T10:00:00.123Z"');
    expect(text).toContain('"correction_reference_id":101');
    expect(text).toContain('"name":"Дизель 柴油 \\"x\\"\\n"');
    expect(text).toContain('"liters":-45.00,"price_per_liter":2.10,"amount":-98.50');
    expect(text).toContain('"fees":{"total_fees":-1.50,"total_vat":0.00,"total_amount":-100.270000}');
    expect(text).not.toContain('anything');
  });

  it('never records an erased transaction again', async () => {
    await importText(linesOf([confirmed(601)]), '--wait');
    const erased = await service.fuel([
      'transaction',
      'erase',
      '601',
      '--reason',
      'court order',
      '--yes',
      '--wait',
    ]);
    expect(erased.code).toBe(0);
    expect(await visible()).not.toContain(601);
    const again = await importText(linesOf([confirmed(601), confirmed(602)]), '--wait');
    expect([again.code, again.json]).toEqual([1, { recorded: 1, unchanged: 0, refused: 1 }]);
    expect(await visible()).not.toContain(601);
    expect((await service.fuel(['transaction', 'show', '601'])).code).toBe(1);
    expect((await service.fuel(['transaction', 'erase', '601', '--reason', 'again', '--yes'])).code).toBe(0);
    const { lines } = await service.done(['audit', '--json', '--transaction', '601']);
    expect(lines.map(({ type, data }) => [type, data.reason])).toEqual([
      ['TransactionErased', 'court order'],
    ]);
  });
});
