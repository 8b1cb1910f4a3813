import { spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSender } from '../../../src/push/sender/sender.ts';
import { outcomeInTime, receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, receiverCertificate, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { memoryLog } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

const { certificate, sender } = receiverTrust();
const ANY_CERTIFICATE = { requestCert: true, rejectUnauthorized: false };
const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256;

/** The files of the service's certificate, which the first one is in. */
async function ownFiles() {
  const folder = temporaryFolder();
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const [first, second] = await Promise.all([
    receiverCertificate(['one.test']),
    receiverCertificate(['two.test'], { notAfter: new Date('2099-01-01') }),
  ]);
  const write = ({ cert, key }: typeof first): void => {
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key);
  };
  write(first);
  return { files, first, second, write };
}

test('a receiver that asks for a certificate is shown it, and a renewed one on the next connection', async () => {
  const { files, first, second, write } = await ownFiles();
  const answer = OK.replace('200 OK', '200 OK\r\nConnection: close');
  const seen: unknown[] = [];
  const receiver = await openReceiver(
    certificate(),
    ({ socket }) => {
      seen.push(socket.getPeerX509Certificate()?.fingerprint256);
      socket.end(answer);
    },
    ANY_CERTIFICATE,
  );
  const ends: number[] = [];
  const shown = sender({ certificate: files, onCertificate: (atMs) => ends.push(atMs) });
  expect((await outcomeInTime(shown, sendRequest(receiver.url))).ok).toBe(true);
  expect(seen).toEqual([fingerprint(first.cert)]);
  write(second);
  await until(async () => {
    await shown.send(sendRequest(receiver.url));
    await sleep(100); // the files are looked at once a second
    return seen.at(-1) === fingerprint(second.cert);
  });
  expect([ends[0], ends.at(-1)]).toEqual(
    [first, second].map(({ cert }) => new X509Certificate(cert).validToDate.getTime()),
  );
});

test('without one, a receiver that asks is shown none', async () => {
  const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK), ANY_CERTIFICATE);
  expect((await outcomeInTime(sender(), sendRequest(receiver.url))).ok).toBe(true);
  expect(receiver.requests[0]?.socket.getPeerX509Certificate()).toBeUndefined();
});

test('a pair that does not fit is refused by the names of its settings', async () => {
  const { files, second } = await ownFiles();
  writeFileSync(files.key, second.key);
  const made = () => createSender({ allowPrivate: true, certificate: files, log: memoryLog([]) });
  expect(made).toThrow('FUEL_WEBHOOK_CLIENT_CERT, FUEL_WEBHOOK_CLIENT_KEY');
});

const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;
if (!hasOpenssl) console.log('not tested here: receivers that demand a certificate (openssl is missing)');

describe.runIf(hasOpenssl)('a receiver that demands a certificate', () => {
  /** Starts `openssl s_server`, which ends the handshake of whoever shows no certificate. */
  async function demanding(version: string): Promise<string> {
    const folder = temporaryFolder();
    const port = await lastingPort();
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(cert, certificate().cert);
    writeFileSync(key, certificate().key);
    const of = ['-accept', String(port), '-cert', cert, '-key', key, '-Verify', '1', version];
    const server = spawn('openssl', ['s_server', ...of], { stdio: ['pipe', 'pipe', 'ignore'] });
    onTestFinished(() => void server.kill('SIGKILL'));
    await once(server.stdout, 'data'); // it says ACCEPT
    return `https://localhost:${port}/hook`;
  }

  test('fails, and the failure says so', async () => {
    const url = await demanding('-tls1_3');
    expect(await outcomeInTime(sender(), sendRequest(url))).toMatchObject({
      kind: 'tls',
      detail: expect.stringContaining('the receiver demands a client certificate, and none was shown'),
    });
  });

  test('fails by TLS 1.2, which does not tell the reason, and the failure says what it may be', async () => {
    const url = await demanding('-tls1_2');
    expect(await outcomeInTime(sender(), sendRequest(url))).toMatchObject({
      kind: 'tls',
      detail: expect.stringContaining('perhaps because it demands a client certificate'),
    });
  });

  test('gets the request once one is shown', async () => {
    const [{ files }, url] = [await ownFiles(), await demanding('-tls1_3')];
    const outcome = await outcomeInTime(sender({ certificate: files }), sendRequest(url));
    expect(outcome).toMatchObject({ kind: 'timeout' }); // openssl answers nothing
  });
});
