import { describe, expect, it } from 'vitest';
import { matches } from '../../../src/accounts/key-text.ts';
import { mockData } from '../../../src/customers/mock/mock-data.ts';
import { parseKey } from '../../support/accounts/parse-key.ts';

const TO_MS = Date.parse('2026-10-01T00:00:00.000Z');

describe('the data of a mock', () => {
  const data = mockData(7, TO_MS);

  it('is the same for the same seed, and other data for another', () => {
    expect(mockData(7, TO_MS)).toEqual(data);
    const other = mockData(8, TO_MS);
    expect(other.events).not.toEqual(data.events);
    expect(other.key).not.toBe(data.key);
    expect(other.webhookSecret).not.toBe(data.webhookSecret);
  });

  it('has the same content wherever its times end, up to that end', () => {
    const laterMs = TO_MS + 3_600_000;
    const later = mockData(7, laterMs);
    const fees = ({ events }: typeof data) =>
      events.map(({ data: one }) => ('fees' in one ? one.fees : null));
    expect([fees(later), [...later.shown.keys()], later.key]).toEqual([
      fees(data),
      [...data.shown.keys()],
      data.key,
    ]);
    const last = later.events
      .flatMap(({ data: one }) => ('created_at' in one ? [one.created_at] : []))
      .at(-1);
    const isFresh = Date.parse(last ?? '') > laterMs - 2 * 3_600_000 && Date.parse(last ?? '') <= laterMs;
    expect([isFresh, later.toMs]).toEqual([true, laterMs]);
  });

  it('has two keys and secrets of the form that the service gives, whatever the seed', () => {
    for (const seed of [0, 1, 2, 3, 99, Number.MAX_SAFE_INTEGER]) {
      const { second, ...first } = mockData(seed, TO_MS);
      expect(second.prefix).not.toBe(first.prefix);
      for (const { key, prefix, secretSha256, webhookSecret } of [first, second]) {
        const parsed = parseKey(key);
        expect(parsed).toMatchObject({ environment: 'staging', prefix });
        expect(matches(parsed?.secret ?? '', secretSha256)).toBe(true);
        expect(webhookSecret).toMatch(/^[A-Za-z0-9]{43}$/);
      }
    }
  });

  it('has transactions of each kind: refunds, external ones, and some that are voided', () => {
    const types = new Set(data.events.map(({ type }) => type));
    expect(types.size).toBe(4);
    const isRefund = ({ data: one }: (typeof data.events)[0]) =>
      'correction_reference_id' in one && one.correction_reference_id !== null;
    expect(data.events.some(isRefund)).toBe(true);
    expect(data.shown.size).toBeLessThan(2_000);
    expect(data.shown.size).toBeGreaterThan(1_900);
  });

  it('lists what is shown in the order of its creation, without what is voided', () => {
    const createdAt = new Map(
      data.events.flatMap(({ data: one }) =>
        'created_at' in one ? [[one.transaction_id, one.created_at] as const] : [],
      ),
    );
    const times = [...data.shown.keys()].map((id) => createdAt.get(id) ?? '');
    expect(times).toEqual(times.toSorted());
    const withdrawn = data.events.filter(({ data: one }) => !('created_at' in one));
    expect(withdrawn.filter(({ data: one }) => data.shown.has(one.transaction_id))).toEqual([]);
  });
});
