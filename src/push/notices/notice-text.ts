import type { Notice, NoticeKind } from '../../../projections/notices.ts';
import { printableLine } from '../../base/printable.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';

export interface MailText {
  readonly subject: string;
  readonly text: string;
}

const WHAT_HAPPENED: Readonly<Record<NoticeKind, string>> = {
  failing: 'is failing',
  disabled: 'was switched off',
  enabled: 'was switched on again',
};

/**
 * Writes the e-mail of a notice as plain text: what happened, since when, the last answers, and what to do. Names and
 * answers can't add lines or headers.
 */
export function noticeText(notice: Notice): MailText {
  const happened = WHAT_HAPPENED[notice.kind];
  const paragraphs = [
    `The webhook of ${keyName(notice)} ${happened} at ${formatDateTime(notice.atMs)}.`,
    facts(notice).join('\n'),
    notice.lastAnswers.length === 0
      ? ''
      : [
          'The last answers, newest first:',
          ...notice.lastAnswers.map((answer) => `- ${printableLine(answer)}`),
        ].join('\n'),
    whatToDo(notice),
  ];
  return {
    subject: `Webhook ${happened}: ${printableLine(notice.accountName)}, key ${notice.prefix}`,
    text: `${paragraphs.filter((paragraph) => paragraph !== '').join('\n\n')}\n`,
  };
}

function facts(notice: Notice): string[] {
  const lines = [
    `Account: ${notice.accountId}, ${printableLine(notice.accountName)}`,
    `Address: ${notice.url ?? 'none, the webhook was removed'}`,
  ];
  if (notice.reason !== null) lines.push(`Reason: ${printableLine(notice.reason)}`);
  if (notice.failedInARow > 0) lines.push(`Failed deliveries in a row: ${notice.failedInARow}`);
  if (notice.failingSince !== null) lines.push(`Failing since: ${notice.failingSince}`);
  return lines;
}

function whatToDo(notice: Notice): string {
  const forCustomer = notice.audience === 'customer';
  const { prefix } = notice;
  switch (notice.kind) {
    case 'failing':
      return forCustomer
        ? 'Please check that the address answers with a 2xx status within 500 ms. After 50 failed deliveries in ' +
            'a row, or 3 days of failure, the webhook is switched off. Your transactions remain available ' +
            'through the API.'
        : `What its receiver answered: fuel delivery list --key ${prefix} --state failed. The webhook is ` +
            'switched off after 50 failed deliveries in a row, or 3 days of failure.';
    case 'disabled':
      return forCustomer
        ? 'While it is off, no events are sent and none are kept for later. Please repair the receiver, then ' +
            'ask us to switch the webhook on again. The transactions of the time between remain available ' +
            'through the API.'
        : `Once the customer's receiver works again: fuel webhook enable ${prefix}, then fuel webhook test ` +
            `${prefix}. What failed before can be sent again: fuel delivery redeliver --failed --key ${prefix}.`;
    case 'enabled':
      return forCustomer
        ? 'New transactions are sent again. Those of the time in which it was off are not sent later: please ' +
            'fetch them through the API.'
        : `What failed before can be sent again: fuel delivery redeliver --failed --key ${prefix}.`;
    default:
      return notice.kind satisfies never;
  }
}

function keyName({ prefix, keyLabel }: Notice): string {
  return keyLabel === null ? `key ${prefix}` : `key ${prefix} (${printableLine(keyLabel)})`;
}
