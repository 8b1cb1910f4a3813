import { describe, expect, test } from 'vitest';
import type { Notice } from '../../../projections/notices.ts';
import { noticeText } from '../../../src/push/notices/notice-text.ts';

const NOTICE: Notice = {
  kind: 'disabled',
  audience: 'customer',
  to: ['a@b.example'],
  accountId: 7,
  accountName: 'Harbour Freight',
  prefix: 'abcdefghij',
  keyLabel: 'ERP',
  url: 'https://example.com/hook',
  atMs: Date.parse('2026-09-05T12:00:00Z'),
  reason: '50 deliveries failed in a row',
  failedInARow: 50,
  failingSince: '2026-09-05T10:00:00.000Z',
  lastAnswers: ['503', 'timeout: no answer'],
};

test('a mail says what happened when, to what and why, the last answers, and what to do', () => {
  expect(noticeText(NOTICE)).toEqual({
    subject: 'Webhook was switched off: Harbour Freight, key abcdefghij',
    text: expect.stringContaining(
      [
        'The webhook of key abcdefghij (ERP) was switched off at 2026-09-05T12:00:00.000Z.',
        '',
        'Account: 7, Harbour Freight',
        'Address: https://example.com/hook',
        'Reason: 50 deliveries failed in a row',
        'Failed deliveries in a row: 50',
        'Failing since: 2026-09-05T10:00:00.000Z',
        '',
        'The last answers, newest first:',
        '- 503',
        '- timeout: no answer',
        '',
        'While it is off,',
      ].join('\n'),
    ),
  });
});

test('what is not known, or does not apply, is left out', () => {
  const { text } = noticeText({
    ...NOTICE,
    kind: 'enabled',
    keyLabel: null,
    url: null,
    reason: null,
    failedInARow: 0,
    failingSince: null,
    lastAnswers: [],
  });
  const [happened, facts, ...rest] = text.split('\n\n');
  expect(happened).toBe('The webhook of key abcdefghij was switched on again at 2026-09-05T12:00:00.000Z.');
  expect(facts).toBe('Account: 7, Harbour Freight\nAddress: none, the webhook was removed');
  expect(rest).toHaveLength(1);
});

test('a name, a label or an answer adds no line and no header, and does not reverse text', () => {
  const forged = 'North\r\nBcc: x@y.example\u202e\u009b';
  const shown = 'North\\u000d\\u000aBcc: x@y.example\\u202e\\u009b';
  const { subject, text } = noticeText({
    ...NOTICE,
    accountName: forged,
    keyLabel: forged,
    reason: forged,
    lastAnswers: [forged],
  });
  expect(subject).toBe(`Webhook was switched off: ${shown}, key abcdefghij`);
  for (const line of [
    `The webhook of key abcdefghij (${shown}) was`,
    `Account: 7, ${shown}\n`,
    `Reason: ${shown}\n`,
    `- ${shown}\n`,
  ])
    expect(text).toContain(line);
});

describe('what to do', () => {
  const last = (kind: Notice['kind'], audience: Notice['audience']) =>
    noticeText({ ...NOTICE, kind, audience })
      .text.trimEnd()
      .split('\n\n')
      .at(-1);

  test('is given to the customer in words about the receiver and the API, never with a command', () => {
    expect(last('failing', 'customer')).toMatch(/2xx status within 500 ms.*50 failed deliveries.*3 days/s);
    expect(last('disabled', 'customer')).toMatch(/ask us to switch the webhook on again.*through the API/s);
    expect(last('enabled', 'customer')).toMatch(/not sent later.*fetch them through the API/s);
    for (const kind of ['failing', 'disabled', 'enabled'] as const) {
      expect(last(kind, 'customer')).not.toContain('fuel ');
    }
  });

  test('is given to the operator as the commands to run', () => {
    expect(last('failing', 'operator')).toContain('fuel delivery list --key abcdefghij --state failed');
    expect(last('disabled', 'operator')).toMatch(
      /fuel webhook enable abcdefghij, then fuel webhook test abcdefghij/,
    );
    const redeliver = 'fuel delivery redeliver --failed --key abcdefghij';
    expect(last('disabled', 'operator')).toContain(redeliver);
    expect(last('enabled', 'operator')).toContain(redeliver);
  });
});
