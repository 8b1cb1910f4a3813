import { beforeAll, describe, expect, it } from 'vitest';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { nestedText } from '../support/transactions/deep-values.ts';
import {
  confirmed,
  type EventLine,
  idsOf,
  linesOf,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const AUTHOR = { actor: 'core system', command: 'test' };
const KIB_64 = 65_536;

/** Before its first member, as another writer's text may have it. */
const withExtra = (event: EventLine, extra: string): string =>
  JSON.stringify(event).replace('{"transaction_id"', `{"extra":${extra},"transaction_id"`);
/** A line of exactly so many bytes. */
const ofBytes = (id: number, bytes: number): string => {
  const filled = (count: number) => JSON.stringify(confirmed(id, { extra: 'x'.repeat(count) }));
  return filled(bytes - filled(0).length);
};
const named = (id: number, name: string): EventLine =>
  confirmed(id, { station: { id: 88, name, provider: { id: 4, name: 'Petrona' } } });

describe('a file with lines beyond the bounds', () => {
  const service = new ServiceProcess();
  let key = '';
  const visible = async () =>
    idsOf((await service.get(`/transactions?${SEPTEMBER}&limit=100`, { key })).body);

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
  });

  it('has each of them reported, and everything else recorded once', async () => {
    const lines = [
      JSON.stringify(confirmed(1)),
      withExtra(confirmed(2), nestedText(20_000)),
      withExtra(confirmed(3), nestedText(64)),
      withExtra(confirmed(4), nestedText(63)),
      JSON.stringify(named(5, 'x'.repeat(1_001))),
      JSON.stringify(named(6, '😀'.repeat(1_000))),
      ofBytes(7, KIB_64 + 1),
      ofBytes(8, KIB_64),
      JSON.stringify(confirmed(9, { fees: { total_fees: '-0.00', total_vat: '-0.01', total_amount: '-0' } })),
      JSON.stringify(confirmed(10, { driver: { id: 77, name: { toString: 1 } } })),
    ];
    const importLines = () =>
      service.fuel(['transaction', 'import', '-', '--json', '--wait'], { stdin: lines.join('\n') });
    const first = await importLines();
    expect([first.code, first.json]).toEqual([1, { recorded: 5, unchanged: 0, refused: 5 }]);
    const reasons = first.stderr.trim().split('\n').sort();
    expect(reasons).toEqual([
      expect.stringMatching(/\b10: driver\.name: must be a string/),
      expect.stringMatching(/\b2: nests deeper than the 64 levels/),
      expect.stringMatching(/\b3: nests deeper than the 64 levels/),
      expect.stringMatching(/\b5: station\.name: must have at most 1000 characters/),
      expect.stringMatching(/\b7: is longer than 65536 bytes/),
      expect.stringMatching(/^warning: the directory lacks corporate 31 of account 7: /),
    ]);
    const again = await importLines();
    expect([again.code, again.json]).toEqual([1, { recorded: 0, unchanged: 5, refused: 5 }]);
    expect((await visible()).sort()).toEqual([1, 4, 6, 8, 9]);
    const { text } = await service.get(`/transactions?${SEPTEMBER}`, { key });
    expect(text).toContain('"fees":{"total_fees":0.00,"total_vat":-0.01,"total_amount":0.000000}');
    const shown = await service.done(['transaction', 'show', '9', '--json']);
    expect(shown.json.events[0].data.fees.total_fees).toBe('-0.00'); // the stream keeps what was recorded
  });

  it('may consist of 200,000 lines of one character', async () => {
    const stdin = `${'1\n'.repeat(200_000)}${linesOf([confirmed(20)])}`;
    const { code, json } = await service.fuel(['transaction', 'import', '-', '--json'], { stdin });
    expect([code, json]).toEqual([1, { recorded: 1, unchanged: 0, refused: 200_000 }]);
  });
});

describe('a store that was written to directly', () => {
  it('with 500 texts of 100,000 characters starts: they are parked, and everything else is served', async () => {
    const service = new ServiceProcess();
    const { key } = await openAccount(service);
    const tooLong = Array.from({ length: 500 }, (_, index) => named(1_000 + index, 'x'.repeat(100_000)));
    // Allowed, though each takes a hundred times the memory of a usual one.
    const large = Array.from({ length: 80 }, (_, index) =>
      confirmed(2_000 + index, { extra: Array.from({ length: 20_000 }, () => []) }),
    );
    const appends = [confirmed(1), ...tooLong, ...large, confirmed(2)].map(({ type, data }) => ({
      stream: `transaction-${data.transaction_id}`,
      expected: 'none' as const,
      events: [newEvent({ type, data } as TransactionEvent, AUTHOR, Date.now())],
    }));
    await service.operator.with((engines) => engines.store().append(appends));
    await service.start();
    const pull = () => service.get(`/transactions?${SEPTEMBER}&limit=100`, { key });
    await until(
      async () => (await pull()).status === 200 && idsOf((await pull()).body).length === 82,
      20_000,
    );
    const shown = idsOf((await pull()).body);
    expect(shown.filter((id) => id >= 1_000 && id < 2_000)).toEqual([]);
    const parked = await service.done(['projection', 'parked', '--json']);
    expect(parked.lines).toHaveLength(500);
    expect(parked.lines[0]).toMatchObject({
      stream: 'transaction-1000',
      reason: 'station.name: must have at most 1000 characters',
    });
    expect(await service.stop()).toBe(0);
  });
});
