import { describe, expect, test } from 'vitest';
import { decode, decodeStrict, occurredAt, printableData } from '../../src/event-store/codec.ts';
import { type RecordedEvent, Unreadable } from '../../src/event-store/recorded-event.ts';
import { nested } from '../support/transactions/deep-values.ts';

function recorded(changes: Partial<RecordedEvent> = {}): RecordedEvent {
  return {
    position: 1,
    stream: 'account-7',
    revision: 0,
    id: '5f2c1f8e-8d0c-4a39-9a54-0c1d8f1c2b11',
    type: 'AccountOpened',
    data: { account_id: 7, name: 'North' },
    metadata: { schema_version: 1, at: '2026-09-03T10:00:00+02:00' },
    recordedAtMs: Date.UTC(2026, 8, 4),
    ...changes,
  };
}

const reasonOf = (changes: Partial<RecordedEvent>, read = decode): string => {
  const decoded = read(recorded(changes));
  return decoded.ok ? 'it was read' : decoded.reason;
};

describe('decode', () => {
  test('gives the data and metadata of an event of the present version', () => {
    const { data, metadata } = recorded();
    expect(decode(recorded())).toEqual({ ok: true, type: 'AccountOpened', data, metadata });
  });

  test.each([undefined, null, {}, { actor: 'someone' }])('treats metadata %j as version 1', (metadata) => {
    expect(decode(recorded({ metadata }))).toMatchObject({ ok: true, data: { account_id: 7 } });
  });

  test('refuses an unknown type or a newer version, with the reason', () => {
    expect(reasonOf({ type: 'AccountPainted' })).toBe('unknown event type AccountPainted');
    expect(reasonOf({ type: 'toString' })).toBe('unknown event type toString');
    expect(reasonOf({ data: new Unreadable('data is not JSON: x') })).toBe('data is not JSON: x');
    expect(reasonOf({ metadata: new Unreadable('metadata is not JSON: x') })).toBe('metadata is not JSON: x');
    expect(reasonOf({ metadata: { schema_version: 2 } })).toContain('schema_version 2 is newer than 1');
  });

  test.each([0, -1, 1.5, '1'])('refuses the schema version %j', (schema_version) => {
    expect(reasonOf({ metadata: { schema_version } })).toContain('schema_version must be an integer from 1');
  });

  test('does not validate the data against its schema', () => {
    expect(decode(recorded({ data: { anything: true } }))).toMatchObject({
      ok: true,
      data: { anything: true },
    });
  });
});

describe('an event that nests too deep', () => {
  test('is refused, in its data and in its metadata, at any depth', () => {
    for (const levels of [64, 65, 5_000, 200_000]) {
      // The data itself is a level, and so is the metadata.
      const deep = { account_id: 7, name: 'North', extra: nested(levels) };
      for (const read of [decode, decodeStrict]) {
        expect(reasonOf({ data: deep }, read)).toBe('data nests deeper than 64 levels');
        expect(reasonOf({ metadata: { schema_version: nested(levels) } }, read)).toBe(
          'metadata nests deeper than 64 levels',
        );
      }
    }
    const allowed = { account_id: 7, name: 'North', extra: nested(63) };
    expect(decodeStrict(recorded({ data: allowed, metadata: { extra: nested(63) } }))).toMatchObject({
      ok: true,
    });
  });

  test('is not printed where it cannot be serialized', () => {
    expect(printableData(recorded({ data: nested(200_000) }))).toBeNull();
    expect(printableData(recorded({ data: new Unreadable('not JSON') }))).toBeNull();
    const readable = { extra: nested(500) };
    expect(printableData(recorded({ data: readable }))).toBe(readable);
  });
});

test('a reason that quotes the event is shortened, and there is one even where the event cannot be quoted', () => {
  expect(reasonOf({ type: 'x'.repeat(100_000) })).toHaveLength(1_000);
  expect(reasonOf({ metadata: { schema_version: 'x'.repeat(100_000) } })).toHaveLength(1_000);
  const name = Array.from({ length: 100_000 }, () => 'x');
  expect(reasonOf({ data: { account_id: 7, name } }, decodeStrict).length).toBeLessThan(300);
  for (const value of [{ toString: 1 }, [{ toString: null }]]) {
    expect(reasonOf({ data: { account_id: 7, name: value } }, decodeStrict)).toMatch(/^data: does not fit/);
  }
});

describe('decodeStrict', () => {
  test('accepts data that fits its schema, also with unknown fields', () => {
    const data = { account_id: 7, name: 'North', colour: 'green' };
    expect(decodeStrict(recorded({ data }))).toMatchObject({ ok: true, data });
  });

  test('lists every fault', () => {
    const reason = reasonOf({ data: { account_id: '7' } }, decodeStrict);
    expect(reason).toContain('account_id: must be an integer');
    expect(reason).toContain('name: ');
  });

  test('refuses what decode refuses', () => {
    expect(reasonOf({ type: 'AccountPainted' }, decodeStrict)).toBe('unknown event type AccountPainted');
  });
});

describe('recordedAt', () => {
  test('is the command clock of the metadata, in UTC', () => {
    expect(occurredAt(recorded())).toBe('2026-09-03T08:00:00.000Z');
  });

  test.each([undefined, {}, { at: '2026-02-30T00:00:00Z' }, { at: 5 }, new Unreadable('x')])(
    'is the clock of the store where the metadata is %j',
    (metadata) => {
      expect(occurredAt(recorded({ metadata }))).toBe('2026-09-04T00:00:00.000Z');
    },
  );
});
