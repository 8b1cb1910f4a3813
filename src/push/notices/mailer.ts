import { createTransport } from 'nodemailer';
import type { Config } from '../../base/config/config.ts';
import type { MailText } from './notice-text.ts';

/** A stopping service waits for the mail that is being sent, so a mail server that hangs must not take long. */
const MAX_WAIT_MS = 5_000;
const PERMANENT_FROM = 500; // SMTP: 4xx is temporary
const ADDRESS = /[^\s<>"(),:;]+@[^\s<>"(),:;]+/g;
const DEFAULT_FROM = 'fuel-integration@localhost';

/** How e-mails leave this process. The simulation replaces it, like `world`. */
export const mail = { createTransport };

export interface Mail extends MailText {
  readonly to: readonly string[];
}

/** `sent` has the number of recipients that the mail server refused. `refused` means that it refused all of them permanently. */
type MailResult =
  | { readonly kind: 'sent'; readonly rejected: number }
  | { readonly kind: 'not sent' }
  | { readonly kind: 'refused'; readonly reason: string };

export interface Mailer {
  /** Rejects if sending may succeed later. Neither the error nor a `reason` contains an address. */
  send(mail: Mail): Promise<MailResult>;
  close(): void;
}

/** Creates a mailer that sends by SMTP if `FUEL_SMTP_URL` is set, and otherwise sends nothing. */
export function createMailer(
  config: Pick<Config, 'FUEL_SMTP_URL' | 'FUEL_MAIL_FROM' | 'FUEL_OPERATOR_EMAIL'>,
): Mailer {
  const { FUEL_SMTP_URL: url } = config;
  const from = config.FUEL_MAIL_FROM ?? config.FUEL_OPERATOR_EMAIL ?? DEFAULT_FROM;
  return url === undefined ? NO_MAILER : smtpMailer(url, from);
}

const NO_MAILER: Mailer = { send: async () => ({ kind: 'not sent' }), close: () => undefined };

/** Connects to the mail server without sending anything. Rejects with the reason if that fails. */
export async function verifyMailServer(url: string): Promise<void> {
  const transport = transportTo(url);
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}

function transportTo(url: string) {
  return mail.createTransport({
    url,
    connectionTimeout: MAX_WAIT_MS,
    greetingTimeout: MAX_WAIT_MS,
    socketTimeout: MAX_WAIT_MS,
    ...startTls(url),
  });
}

function smtpMailer(url: string, from: string): Mailer {
  const transport = transportTo(url);
  return {
    async send({ to, subject, text }) {
      try {
        const { rejected } = await transport.sendMail({ from, to: [...to], subject, text });
        return { kind: 'sent', rejected: rejected?.length ?? 0 };
      } catch (error) {
        const { responseCode, message } = error as Error & { readonly responseCode?: number };
        const reason = message.replace(ADDRESS, '…'); // servers quote whom they refuse
        if (responseCode === undefined || responseCode < PERMANENT_FROM) throw new Error(reason);
        return { kind: 'refused', reason };
      }
    },
    close: () => transport.close(),
  };
}

/**
 * With smtp://, encryption is used if it is offered, even with a certificate that can't be verified, since the alternative
 * is plain text. With credentials, smtps:// or `?requireTLS=true` the certificate must be verified.
 */
function startTls(url: string): object {
  const { protocol, username, searchParams } = new URL(url);
  const isRequired = protocol === 'smtps:' || username !== '' || searchParams.get('requireTLS') === 'true';
  return isRequired ? {} : { opportunisticTLS: true, tls: { rejectUnauthorized: false } };
}
