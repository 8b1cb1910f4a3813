import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type GenerateResult, generate, type SelfsignedOptions } from 'selfsigned';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import type { Sender } from '../../../src/push/sender/sender.ts';
import { configuredSender, createSender } from '../../../src/push/sender/sender.ts';
import { outcomeInTime } from '../../support/deliveries/test-sender.ts';
import {
  OK,
  openReceiver,
  type ReceiverCertificate,
  receiverCertificate,
  sendRequest,
} from '../../support/deliveries/tls-receiver.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let first: ReceiverCertificate;
let second: ReceiverCertificate;
beforeAll(async () => {
  [first, second] = await Promise.all([authority('first'), authority('second')]);
});

/** Named differently: TLS looks an authority up by its name. */
const authority = (name: string): Promise<ReceiverCertificate> =>
  receiverCertificate([`${name}.test`, 'localhost']);

/** The kind of failure of an attempt to a receiver with this certificate; none where it succeeds. */
async function failureTo(certificate: ReceiverCertificate, sender: Sender): Promise<string | undefined> {
  onTestFinished(() => sender.close());
  const { url } = await openReceiver(certificate, ({ socket }) => socket.write(OK));
  const outcome = await outcomeInTime(sender, sendRequest(url));
  return outcome.ok ? undefined : outcome.kind;
}

const trusting = (extraCa: string | undefined) =>
  createSender({ allowPrivate: true, extraCa, log: silentLog });

test('every authority of the file is trusted, beside the usual ones', async () => {
  const usual = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(usual));
  const third = await authority('third');
  setDefaultCACertificates([third.cert]);
  const both = `# the operator's\n${first.cert}\n${second.cert}`;
  for (const certificate of [first, second, third]) {
    expect(await failureTo(certificate, trusting(both))).toBeUndefined();
  }
  expect(await failureTo(third, trusting(undefined))).toBeUndefined();
  expect(await failureTo(first, trusting(undefined))).toBe('tls');
});

describe('of a chain of root, intermediate and receiver', () => {
  let intermediate: GenerateResult;
  let root: GenerateResult;
  let chained: ReceiverCertificate;
  beforeAll(async () => {
    const extensions = [{ name: 'basicConstraints', cA: true, critical: true }] as const;
    const made = (name: string, options: SelfsignedOptions) =>
      generate([{ name: 'commonName', value: name }], { keyType: 'ec', algorithm: 'sha256', ...options });
    const signedBy = ({ cert, private: key }: GenerateResult) => ({ ca: { cert, key } });
    root = await made('root', { extensions: [...extensions] });
    intermediate = await made('intermediate', { extensions: [...extensions], ...signedBy(root) });
    const altNames = [{ type: 2 as const, value: 'localhost' }];
    const leaf = await made('leaf', {
      extensions: [{ name: 'subjectAltName', altNames }],
      ...signedBy(intermediate),
    });
    chained = { cert: `${leaf.cert}\n${intermediate.cert}`, key: leaf.private };
  });

  test('each may be the authority that the file names, an intermediate alone too', async () => {
    for (const { cert } of [root, intermediate])
      expect(await failureTo(chained, trusting(cert))).toBeUndefined();
    expect(await failureTo(chained, trusting(first.cert))).toBe('tls');
  });
});

test('a file without a certificate is refused, and one of several that cannot be read is named by its number', () => {
  const broken = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
  for (const extraCa of ['', 'no certificate', broken])
    expect(() => trusting(extraCa)).toThrow('FUEL_WEBHOOK_CA');
  expect(() => trusting(first.cert + broken)).toThrow("certificate 2 can't be read");
});

test('the sender of the service is the one that its settings say', async () => {
  const file = join(temporaryFolder(), 'ca.pem');
  writeFileSync(file, first.cert);
  const configured = (allowPrivate: boolean, ca: string | undefined) =>
    configuredSender(
      {
        FUEL_WEBHOOK_ALLOW_PRIVATE: allowPrivate,
        FUEL_WEBHOOK_CA: ca,
        FUEL_WEBHOOK_PROXY: undefined,
        FUEL_WEBHOOK_CLIENT_CERT: undefined,
        FUEL_WEBHOOK_CLIENT_KEY: undefined,
      },
      silentLog,
    );
  expect(await failureTo(first, configured(true, file))).toBeUndefined();
  expect(await failureTo(first, configured(true, undefined))).toBe('tls');
  expect(await failureTo(first, configured(false, file))).toBe('forbidden');
  expect(() => configured(true, `${file}.none`)).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: `FUEL_WEBHOOK_CA: ${file}.none can't be read`,
    }),
  );
});
