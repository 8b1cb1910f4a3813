import { describe, expect, test } from 'vitest';
import {
  ERASED_REVISION,
  type RecordedEvent,
  STREAM_ERASED,
  Unreadable,
} from '../../src/event-store/recorded-event.ts';
import { projectEvent } from '../../src/records/project-event.ts';
import { cancelled, confirmed, external, voided } from '../support/transactions/e2e-samples.ts';

const METADATA = { schema_version: 1, actor: 'x', at: '2026-09-03T08:00:00.000Z', command: 'x' };
const PLACE = { position: 12, stream: 'transaction-5', revision: 3 };

function recorded(event: Partial<RecordedEvent>): RecordedEvent {
  const given = { id: 'an id', type: 'TransactionConfirmed', data: null, recordedAtMs: 0 };
  return { ...given, ...PLACE, metadata: METADATA, ...event };
}

describe('what an event does to the view', () => {
  test.each([
    [confirmed(5), { kind: 'show', revision: 3, row: { id: 5, accountId: 7, status: 'CONFIRMED' } }],
    [external(5), { kind: 'show', revision: 3, row: { id: 5, accountId: 7, status: 'EXTERNAL' } }],
    [voided(5), { kind: 'hide', revision: 3, id: 5, accountId: 7 }],
    [cancelled(5), { kind: 'hide', revision: 3, id: 5, accountId: 7 }],
  ])('of type $type is its change, with its place', (event, change) => {
    const projected = projectEvent(recorded(event));
    expect(projected).toMatchObject({ position: 12, stream: 'transaction-5', type: event.type, change });
  });

  test('that stands for an erasure is an erasure of the stream’s transaction', () => {
    const erasure = { type: STREAM_ERASED, revision: ERASED_REVISION, metadata: null };
    expect(projectEvent(recorded(erasure))).toEqual({
      position: 12,
      stream: 'transaction-5',
      type: STREAM_ERASED,
      change: { kind: 'erase', revision: ERASED_REVISION, id: 5 },
    });
    expect(projectEvent(recorded({ ...erasure, stream: 'transaction-x' }))).toMatchObject({
      revision: ERASED_REVISION,
      parkReason: expect.stringContaining('not named after a transaction'),
    });
  });

  test.each<[string, Partial<RecordedEvent>, RegExp]>([
    ['of an unknown type', { type: 'TransactionGuessed', data: {} }, /TransactionGuessed/],
    ['that is no JSON', { ...confirmed(5), data: new Unreadable('no JSON') }, /no JSON/],
    ['of the type of an erasure, appended by a writer', { type: STREAM_ERASED, data: {} }, /streamDeleted/],
    ['of an account', { type: 'IntegrationEnabled', data: { account_id: 7 } }, /does not belong/],
    ['of another transaction than its stream’s', confirmed(6), /6 does not belong in transaction-5/],
    [
      'in a stream that is written otherwise',
      { ...confirmed(5), stream: 'transaction-05' },
      /transaction-05/,
    ],
    [
      'with an image that another one is signed for',
      confirmed(5, { images: { pump: '../other/secret.jpg', odometer: null } }),
      /images.pump: must have no segment/,
    ],
    [
      'with half of a surrogate pair',
      confirmed(5, { images: { pump: null, odometer: '\ud800' } }),
      /images.odometer: must be Unicode/,
    ],
    ['with a value that cannot be shown', confirmed(5, { fuel: null }), /fuel/],
  ])('%s is to park it, with its place and the reason', (_, event, reason) => {
    const projected = projectEvent(recorded(event));
    const { position, stream, type, revision } = recorded(event);
    expect(projected).toEqual({
      position,
      stream,
      type,
      revision,
      parkReason: expect.stringMatching(reason),
    });
  });
});
