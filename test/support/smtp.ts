import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { onTestFinished } from 'vitest';

export interface ReceivedMail {
  readonly to: readonly string[];
  readonly raw: string;
}

export interface TestSmtpServer {
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  /** What the next recipients are answered with instead of being taken: an SMTP status. */
  readonly refuse: number[];
  /** Resolves once so many mails have come. */
  received(count: number): Promise<readonly ReceivedMail[]>;
}

/** A real SMTP server on a free port, with the package's own certificate for STARTTLS. */
export async function startSmtpServer(): Promise<TestSmtpServer> {
  const mails: ReceivedMail[] = [];
  const refuse: number[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = new SMTPServer({
    authOptional: true,
    onRcptTo(_address, _session, done) {
      const responseCode = refuse.shift();
      done(responseCode === undefined ? null : Object.assign(new Error('not now'), { responseCode }));
    },
    onData(stream, session, done) {
      let raw = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        raw += text;
      });
      stream.on('end', () => {
        mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), raw });
        for (const { count, resolve } of waiting) if (mails.length >= count) resolve();
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(resolve)));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    refuse,
    async received(count) {
      if (mails.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
      return mails;
    },
  };
}
