import { describe, expect, test } from 'vitest';
import { decode, decodeStrict, recordedAt, type SchemaHistory } from '../../src/event-store/codec.ts';
import { type RecordedEvent, Unreadable } from '../../src/event-store/event-store.ts';

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

  test.each([undefined, null, {}, { actor: 'someone' }])('takes metadata %j for version 1', (metadata) => {
    expect(decode(recorded({ metadata }))).toMatchObject({ ok: true, data: { account_id: 7 } });
  });

  test('refuses what it can not know, with a reason that says why', () => {
    expect(reasonOf({ type: 'AccountPainted' })).toBe('unknown event type AccountPainted');
    expect(reasonOf({ type: 'toString' })).toBe('unknown event type toString');
    expect(reasonOf({ data: new Unreadable('data is not JSON: x') })).toBe('data is not JSON: x');
    expect(reasonOf({ metadata: new Unreadable('metadata is not JSON: x') })).toBe('metadata is not JSON: x');
    expect(reasonOf({ metadata: { schema_version: 2 } })).toContain('schema_version 2 is newer than 1');
  });

  test.each([0, -1, 1.5, '1'])('refuses the schema version %j', (schema_version) => {
    expect(reasonOf({ metadata: { schema_version } })).toContain('schema_version must be an integer from 1');
  });

  test('does not hold the data against its schema', () => {
    expect(decode(recorded({ data: { anything: true } }))).toMatchObject({
      ok: true,
      data: { anything: true },
    });
  });
});

describe('older versions', () => {
  const history: SchemaHistory = {
    version: 4,
    upcasters: {
      AccountOpened: {
        1: (data) => ({ ...(data as object), name: (data as { title: string }).title.trim() }),
        3: (data) => ({ ...(data as object), steps: '1, 3' }),
      },
    },
  };

  test('are brought up step by step, past versions that changed nothing', () => {
    const data = { account_id: 7, title: ' North ' };
    const expected = { account_id: 7, title: ' North ', name: 'North', steps: '1, 3' };
    expect(decode(recorded({ data }), history)).toMatchObject({ ok: true, data: expected });
    expect(data).toEqual({ account_id: 7, title: ' North ' });
  });

  test('are brought up from the version they have', () => {
    const event = recorded({ metadata: { schema_version: 3 }, data: { name: 'North' } });
    expect(decode(event, history)).toMatchObject({ ok: true, data: { name: 'North', steps: '1, 3' } });
    const present = recorded({ metadata: { schema_version: 4 }, data: { name: 'North' } });
    expect(decode(present, history)).toMatchObject({ ok: true, data: { name: 'North' } });
  });

  test('of another type are left as they are', () => {
    const event = recorded({ type: 'IntegrationEnabled', data: { account_id: 7 } });
    expect(decode(event, history)).toMatchObject({ ok: true, data: { account_id: 7 } });
  });

  test('that can not be brought up are refused, and nothing is thrown', () => {
    const decoded = decode(recorded({ data: { account_id: 7 } }), history);
    expect(decoded).toMatchObject({
      ok: false,
      reason: expect.stringContaining('version 1 of AccountOpened could not be brought up'),
    });
  });

  test('are held against the present schema only when they are brought up', () => {
    expect(decodeStrict(recorded({ data: { account_id: 7, title: 'North' } }), history)).toMatchObject({
      ok: true,
    });
  });
});

describe('decodeStrict', () => {
  test('accepts what fits its schema, unknown fields included', () => {
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
    expect(recordedAt(recorded())).toBe('2026-09-03T08:00:00.000Z');
  });

  test.each([undefined, {}, { at: '2026-02-30T00:00:00Z' }, { at: 5 }, new Unreadable('x')])(
    'is the clock of the store where the metadata is %j',
    (metadata) => {
      expect(recordedAt(recorded({ metadata }))).toBe('2026-09-04T00:00:00.000Z');
    },
  );
});
