import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { folder, fuelProcess } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  cancelled,
  confirmed,
  type EventLine,
  external,
  idsOf,
  linesOf,
  minutely,
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

  it('treats the same line twice in one input, with its members in another order, as one', async () => {
    const { type, data } = confirmed(104);
    const reordered = JSON.stringify({ data: Object.fromEntries(Object.entries(data).reverse()), type });
    const { json } = await importText(`${linesOf([confirmed(104)])}${reordered}\n`);
    expect(json).toEqual({ recorded: 1, unchanged: 1, refused: 0 });
  });

  it('names each bad line with its number and reason, and records the rest', async () => {
    const { type, data } = confirmed(110);
    const bad: string[] = [
      'not json',
      '[]',
      '"text"',
      '{}',
      JSON.stringify({ type: 'TransactionGuessed', data }),
      JSON.stringify({ type: '__proto__', data }),
      JSON.stringify({ type }),
      JSON.stringify({ type, data: null }),
      ...[
        changed(confirmed(110), ['fuel', 'liters'], 45.2),
        changed(confirmed(110), ['fuel', 'amount'], '98.541'),
        changed(confirmed(110), ['fees', 'total_amount'], '1.1234567'),
        changed(confirmed(110), ['fuel', 'amount'], '1e2'),
        changed(confirmed(110), ['created_at'], '2026-02-30T00:00:00Z'),
        changed(confirmed(110), ['created_at'], '2026-09-03T08:15:30'),
        changed(confirmed(110), ['confirmed_at'], undefined),
        changed(confirmed(110), ['transaction_id'], '110'),
        changed(confirmed(110), ['vehicle', 'year'], 2022.5),
        changed(confirmed(110), ['driver', 'name'], null),
        changed(confirmed(110), ['corporate'], null),
        changed(confirmed(110), ['station', 'provider'], null),
        changed(external(110), ['station', 'id'], 88),
        changed(external(110), ['station', 'provider'], { id: 4, name: 'Petrona' }),
        changed(voided(101), ['voided_at'], 'yesterday'),
        voided(101, { account_id: 8 }),
        voided(999),
        voided(102),
        cancelled(103),
        confirmed(101, { odometer_reading: 1 }),
        external(101),
        confirmed(103, { odometer_reading: 1 }),
      ].map((event) => JSON.stringify(event)),
      JSON.stringify(confirmed(110)).replace('"transaction_id":110', '"transaction_id":9007199254740992'),
      JSON.stringify(confirmed(110)).replace('"transaction_id":110', '"transaction_id":-1'),
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

  it('reads Windows line ends, a byte order mark, empty lines and a last line without an end', async () => {
    const [one, two, three] = [401, 402, 403].map((id) => JSON.stringify(confirmed(id)));
    const { code, json } = await importText(`\uFEFF${one}\r\n\r\n\n   \n${two}\r\n${three}`);
    expect([code, json]).toEqual([0, { recorded: 3, unchanged: 0, refused: 0 }]);
    const { stderr } = await importText(`${one}\r\n\r\n\nbroken\r\n`);
    expect(stderr).toMatch(/\b4\b/);
  });

  it('records nothing from an empty input', async () => {
    const { code, json } = await importText('');
    expect([code, json]).toEqual([0, { recorded: 0, unchanged: 0, refused: 0 }]);
  });

  it('refuses a line that is not UTF-8, or is longer than any transaction, and continues', async () => {
    const good = linesOf([confirmed(404)]);
    const input = Buffer.concat([
      Buffer.from([0x7b, 0xff, 0xfe, 0x0a]),
      Buffer.from(`"${'x'.repeat(5_000_000)}"\n`),
      Buffer.from(good),
    ]);
    const { code, json, stderr } = await importText(input);
    expect([code, json]).toEqual([1, { recorded: 1, unchanged: 0, refused: 2 }]);
    expect(stderr.length).toBeLessThan(10_000);
  });

  it('is refused for a missing file and for a folder', async () => {
    for (const path of [join(folder(), 'missing.jsonl'), folder()]) {
      const { code, stdout, stderr } = await service.fuel(['transaction', 'import', path, '--json']);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(path);
      expect(stderr).not.toMatch(/\n\s+at /);
    }
  });

  it('hides what was voided or cancelled, from both the list and transaction show', async () => {
    await importText(linesOf([confirmed(501), external(502)]), '--wait');
    expect(await visible()).toEqual(expect.arrayContaining([501, 502]));
    await importText(linesOf([voided(501), cancelled(502)]), '--wait');
    const after = await visible();
    expect([after.includes(501), after.includes(502)]).toEqual([false, false]);
    const { json } = await service.done(['transaction', 'show', '501', '--json']);
    expect(json).toMatchObject({ id: 501, visible: false, deliveries: [] });
    expect(json.events.map(({ type }: { type: string }) => type)).toEqual([
      'TransactionConfirmed',
      'TransactionVoided',
    ]);
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

  it('may run twice at once: together they record everything once', async () => {
    const input = linesOf(minutely(3_000, 10_000));
    const once = () =>
      fuelProcess(['transaction', 'import', '-', '--json'], { dataDir: service.dataDir, stdin: input });
    const both = await Promise.all([once(), once()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.map(({ json }) => json.recorded + json.unchanged)).toEqual([3_000, 3_000]);
    expect(both.reduce((sum, { json }) => sum + json.recorded, 0)).toBe(3_000);
    expect(both.map(({ json }) => json.refused)).toEqual([0, 0]);
  });
});
