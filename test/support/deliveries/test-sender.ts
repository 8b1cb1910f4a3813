import { beforeAll, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import type { Sender } from '../../../src/push/sender/sender.ts';
import { createSender, type SenderOptions } from '../../../src/push/sender/sender.ts';
import type { SendRequest } from '../../../src/push/sender/timed-send.ts';
import { type ReceiverCertificate, receiverCertificate } from './tls-receiver.ts';

/** Makes a certificate for the receivers of a test file, and senders that trust it. */
export function receiverTrust() {
  let made: ReceiverCertificate | undefined;
  beforeAll(async () => {
    made = await receiverCertificate();
  });
  const certificate = (): ReceiverCertificate => {
    if (made === undefined) throw new Error('asked for before the tests began');
    return made;
  };
  return {
    certificate,
    /** Makes a sender that may call private addresses by default. It is closed when the test is over. */
    sender(options: Partial<SenderOptions> = {}): Sender {
      const opened = createSender({
        allowPrivate: true,
        extraCa: certificate().cert,
        log: silentLog,
        ...options,
      });
      onTestFinished(() => opened.close());
      return opened;
    },
  };
}

const TRIES = 5;

/**
 * Returns the outcome of the first attempt that was not too late, since a busy machine may use up the 500 ms itself.
 */
export async function outcomeInTime(sender: Sender, request: SendRequest): Promise<AttemptOutcome> {
  let { outcome } = await sender.send(request);
  for (let tries = 1; tries < TRIES && !outcome.ok && outcome.kind === 'timeout'; tries++) {
    ({ outcome } = await sender.send(request));
  }
  return outcome;
}
