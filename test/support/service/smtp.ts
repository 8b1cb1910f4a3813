import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { onTestFinished } from 'vitest';

interface ReceivedMail {
  readonly to: readonly string[];
  readonly raw: string;
  /** True if it came encrypted. */
  readonly secure: boolean;
}

interface TestSmtpServer {
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  /** The SMTP statuses with which the next recipients are refused; `null` accepts one. */
  readonly refuse: (number | null)[];
  /** Sets the text for recipients that it refuses from now on. */
  saying(text: string): void;
  /** Resolves once this many mails have come. */
  received(count: number): Promise<readonly ReceivedMail[]>;
}

/** Starts a real SMTP server on a free port, with the package's own certificate for STARTTLS, or TLS if `secure`. */
export async function startSmtpServer({ secure = false } = {}): Promise<TestSmtpServer> {
  const mails: ReceivedMail[] = [];
  const refuse: (number | null)[] = [];
  let refusal = 'not now';
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = new SMTPServer({
    secure,
    authOptional: true,
    onRcptTo(_address, _session, done) {
      const responseCode = refuse.shift() ?? null;
      done(responseCode === null ? null : Object.assign(new Error(refusal), { responseCode }));
    },
    onData(stream, session, done) {
      let raw = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        raw += text;
      });
      stream.on('end', () => {
        mails.push({
          to: session.envelope.rcptTo.map(({ address }) => address),
          raw,
          secure: session.secure,
        });
        for (const { count, resolve } of waiting) if (mails.length >= count) resolve();
        done();
      });
    },
  });
  server.on('error', () => undefined); // clients break off connections
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(resolve)));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `${secure ? 'smtps' : 'smtp'}://127.0.0.1:${port}`,
    mails,
    refuse,
    saying(text) {
      refusal = text;
    },
    async received(count) {
      if (mails.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
      return mails;
    },
  };
}
