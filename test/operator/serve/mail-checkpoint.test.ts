import { expect, test } from 'vitest';
import { MemoryLog, openMemoryEventStore } from '../../../src/engines/memory/event-store.ts';
import { mailCheckpoint } from '../../../src/operator/serve/mail-checkpoint.ts';
import type { Mail, MailResult } from '../../../src/push/notices/mailer.ts';
import { lastSeal } from '../../../src/seals/seals.ts';
import { record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { key, seal } from '../../support/seals/sealing.ts';

const TO = ['auditor@example.com'];

function start(result: MailResult = { kind: 'sent', rejected: 0 }) {
  const store = openMemoryEventStore(new MemoryLog(), new FakeClock());
  const mails: Mail[] = [];
  const send = async (mail: Mail): Promise<MailResult> => {
    mails.push(mail);
    return result;
  };
  return { store, mails, mail: () => mailCheckpoint(TO, { store, mailer: { send } }) };
}

test('the mail has the newest checkpoint, as it was signed', async () => {
  const { store, mails, mail } = start();
  await mail(); // nothing is sealed
  expect(mails).toEqual([]);
  await record(store, 'account-1', 'a');
  await seal(store);
  await mail();
  const note = (await lastSeal(store))?.note ?? '';
  expect(mails).toEqual([
    { to: TO, subject: expect.stringContaining('1 events'), text: expect.stringMatching(/Keep this/) },
  ]);
  const text = mails[0]?.text ?? '';
  expect(key.open(text.slice(text.indexOf('\n\n') + 2))).toEqual(key.open(note));
});

test.each([
  [{ kind: 'not sent' }, 'FUEL_SMTP_URL'],
  [{ kind: 'refused', reason: '550 no' }, '550 no'],
] as const)('a mail that is %o is a failure', async (result, text) => {
  const { store, mail } = start(result);
  await record(store, 'account-1', 'a');
  await seal(store);
  await expect(mail()).rejects.toThrow(text);
});
