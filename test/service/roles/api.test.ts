import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { listen } from '../../../src/base/listen.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { startApi } from '../../../src/service/roles/api.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { memoryLog } from '../../support/service/api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/waiting.ts';

/** Starts the role `api` in this process, on this address. */
async function started(listenOn = '127.0.0.1:0') {
  const env = {
    FUEL_DATA_DIR: temporaryFolder(),
    FUEL_LISTEN: listenOn,
    FUEL_STOP_DELAY: '0s',
    FUEL_LOG_LEVEL: 'silent',
  };
  const config = loadConfig(env, 'serve');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  const lines: Record<string, unknown>[] = [];
  const metrics = createMetrics();
  const api = await startApi({
    config,
    engines,
    metrics,
    accounts: engines.access(),
    log: memoryLog(lines),
    clock: systemClock,
    availability: () => 'unavailable',
  });
  onTestFinished(() => api.stop());
  return { api, metrics, lines, folder: env.FUEL_DATA_DIR, port: Number(new URL(api.url).port) };
}

function fingerprintAt(port: number): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });
}

test('a port that another server has is refused', async () => {
  const other = createServer();
  onTestFinished(() => void other.close());
  const { port } = await listen(other, { host: '127.0.0.1', port: 0 });
  await expect(started(`127.0.0.1:${port}`)).rejects.toMatchObject({
    code: 'REFUSED',
    message: `can't listen on 127.0.0.1:${port}: use another address`,
  });
});

test('an API that has stopped has left its port', async () => {
  const { api, port } = await started();
  await api.stop();
  const next = createServer();
  onTestFinished(() => void next.close());
  await listen(next, { host: '127.0.0.1', port });
});

test('more than one passed socket is refused, since connections to the others would wait for ever', async () => {
  Object.assign(process.env, { LISTEN_PID: String(process.pid), LISTEN_FDS: '2' });
  onTestFinished(() => {
    for (const name of ['LISTEN_PID', 'LISTEN_FDS']) delete process.env[name];
  });
  await expect(started()).rejects.toThrow('2 sockets were passed to this process, and it listens on one');
});

test('a renewed certificate is shown, and when it ends; half a renewal leaves the old one', async () => {
  const { folder, port, lines, metrics } = await started();
  const pathOf = (file: string) => join(folder, file);
  const ends = async () => (await metrics.certificateEnd.get()).values[0]?.value;
  const endOf = (pem: string) => new X509Certificate(pem).validToDate.getTime() / 1000;
  const [shown, renewed] = [readFileSync(pathOf('tls-cert.pem'), 'utf8'), await makeCertificate()];
  writeFileSync(pathOf('tls-key.pem'), renewed.key);
  await until(() => lines.some(({ msg }) => String(msg).includes('not usable')));
  expect(await ends()).toBe(endOf(shown));
  expect(await fingerprintAt(port)).toBe(new X509Certificate(shown).fingerprint256);
  writeFileSync(pathOf('tls-cert.pem'), renewed.cert);
  await until(() => lines.some(({ msg }) => msg === 'certificate reloaded'));
  expect(await ends()).toBe(endOf(renewed.cert));
  expect(await fingerprintAt(port)).toBe(new X509Certificate(renewed.cert).fingerprint256);
});
