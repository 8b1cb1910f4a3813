import { createTransport } from 'nodemailer';
import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { MailText } from './notice-text.ts';

/** A service that is asked to stop waits for the mail under way, so a mail server that hangs must not take long. */
const MAX_WAIT_MS = 5_000;
const PERMANENT_FROM = 500; // SMTP: 5xx will be answered again, 4xx may not
const DEFAULT_FROM = 'fuel-integration@localhost';

export interface Mail extends MailText {
  readonly to: readonly string[];
}

/**
 * `sent` says how many of the recipients the mail server did not take. `refused`: it took none, and for good:
 * sending it again would be answered alike.
 */
export type MailResult =
  | { readonly kind: 'sent'; readonly rejected: number }
  | { readonly kind: 'logged' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Sends one e-mail. Rejects where it may succeed later. */
export interface Mailer {
  send(mail: Mail): Promise<MailResult>;
  close(): void;
}

/** Sends by SMTP where `FUEL_SMTP_URL` is set, else writes what would be sent to the log, without addresses. */
export function createMailer(
  config: Pick<Config, 'FUEL_SMTP_URL' | 'FUEL_MAIL_FROM' | 'FUEL_OPERATOR_EMAIL'>,
  log: Log,
): Mailer {
  const { FUEL_SMTP_URL: url } = config;
  const from = config.FUEL_MAIL_FROM ?? config.FUEL_OPERATOR_EMAIL ?? DEFAULT_FROM;
  return url === undefined ? loggingMailer(log) : smtpMailer(url, from);
}

function loggingMailer(log: Log): Mailer {
  return {
    async send({ subject, text }) {
      log.warn({ subject, text }, 'notice not mailed: FUEL_SMTP_URL is not set');
      return { kind: 'logged' };
    },
    close: () => undefined,
  };
}

function smtpMailer(url: string, from: string): Mailer {
  const transport = createTransport({
    url,
    connectionTimeout: MAX_WAIT_MS,
    greetingTimeout: MAX_WAIT_MS,
    socketTimeout: MAX_WAIT_MS,
    ...startTls(url),
  });
  return {
    async send({ to, subject, text }) {
      try {
        const { rejected } = await transport.sendMail({ from, to: [...to], subject, text });
        return { kind: 'sent', rejected: rejected?.length ?? 0 };
      } catch (error) {
        const { responseCode, message } = error as Error & { readonly responseCode?: number };
        if (responseCode === undefined || responseCode < PERMANENT_FROM) throw error;
        return { kind: 'refused', reason: message };
      }
    },
    close: () => transport.close(),
  };
}

/**
 * By smtp:// encryption is taken where it is offered: one that can't be verified is better than the plain text
 * that would be sent otherwise. Credentials, smtps:// and `?requireTLS=true` insist on a certificate that can.
 */
function startTls(url: string): object {
  const { protocol, username, searchParams } = new URL(url);
  const insists = protocol === 'smtps:' || username !== '' || searchParams.get('requireTLS') === 'true';
  return insists ? {} : { opportunisticTLS: true, tls: { rejectUnauthorized: false } };
}
