import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { folder, fuelProcess } from '../support/service/commands.ts';
import { exchange, openConnection, parseAnswer } from '../support/service/raw-connection.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const THREADS = { FUEL_API_THREADS: '2' };
/** Connections of one moment: by chance all of them reach one thread in one of 10^9 runs. */
const CONNECTIONS = 30;
const IN_ORDER = Array.from({ length: 50 }, (_, index) => 50 - index);

describe('an API of two threads on one port', () => {
  const service = new ServiceProcess({ env: THREADS });
  let key = '';

  /** An answer on a connection of its own. */
  const ask = async (presented: string) =>
    parseAnswer(
      await exchange(
        service.port,
        `GET /api/v1/integration/transactions?${SEPTEMBER} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${presented}\r\nConnection: close\r\n\r\n`,
        { ca: service.ca },
      ),
    );
  const askAtOnce = (count: number, presented: string) =>
    Promise.all(Array.from({ length: count }, () => ask(presented)));
  /** The threads that answered, by their name in the log; the main thread has none. */
  const threadsOf = async (answers: readonly { headers: ReadonlyMap<string, string> }[]) => {
    const lines = await Promise.all(
      answers.map(({ headers }) =>
        service.logged((line) => line.msg === 'request' && line.request_id === headers.get('x-request-id')),
      ),
    );
    return new Set(lines.map(({ thread }) => thread));
  };
  const issue = async (...options: readonly string[]) => {
    const issued = await service.done(['key', 'issue', '7', '--json', '--wait', ...options]);
    return issued.json as { key: string; prefix: string };
  };

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await importEvents(service, minutely(50));
  });

  it('answers on every thread, each with the whole page', async () => {
    const answers = await askAtOnce(CONNECTIONS, key);
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(idsOf(JSON.parse(body))).toEqual(IN_ORDER);
    }
    expect(await threadsOf(answers)).toEqual(new Set([undefined, 'api-2']));
  });

  it('lets exactly the limit of a key through, whichever threads its requests reach', async () => {
    const { key: limited } = await issue('--rate-limit', '25');
    const answers = await askAtOnce(60, limited);
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed).toHaveLength(25);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(35);
    expect((await threadsOf(passed)).size).toBe(2);
  });

  it('counts the guesses of a key’s secret together too', async () => {
    const { prefix } = await issue('--rate-limit', '5');
    const answers = await askAtOnce(20, `svc_test_${prefix}_${'a'.repeat(43)}`);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
  });

  it('refuses a key on every thread once it was switched off and --wait has returned', async () => {
    const { key: revoked, prefix } = await issue();
    expect(new Set((await askAtOnce(CONNECTIONS, revoked)).map(({ status }) => status))).toEqual(
      new Set([200]),
    );
    await service.done(['key', 'off', prefix, '--wait']);
    const answers = await askAtOnce(CONNECTIONS, revoked);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await threadsOf(answers)).size).toBe(2);
  });

  it('shows the requests of all threads in one figure, and the delay of each', async () => {
    const counted = async () => {
      const { text } = await service.ops('/metrics');
      return Number(
        /^fuel_http_requests_total\{status="404",code="NOT_FOUND"\} (\d+)$/m.exec(text)?.[1] ?? 0,
      );
    };
    const unknown = `GET / HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: close\r\n\r\n`;
    const asked = Array.from({ length: CONNECTIONS }, () =>
      exchange(service.port, unknown, { ca: service.ca }),
    );
    await Promise.all(asked);
    await until(async () => (await counted()) === CONNECTIONS, 5_000);
    const { text } = await service.ops('/metrics');
    expect(text).toContain('fuel_http_request_duration_seconds_count{status="404"} 30');
    expect(text).toContain('fuel_event_loop_delay_seconds{thread="api-2"}');
    expect((await service.ops('/readyz')).body.checks.api_threads_ready).toBe(true);
  });

  it('counts the connections of one peer over all threads', async () => {
    const open: TLSSocket[] = [];
    onTestFinished(() => {
      for (const socket of open) socket.destroy();
    });
    const opened = await Promise.all(
      Array.from({ length: 80 }, async () => {
        const { socket } = await openConnection(service.port, { ca: service.ca });
        open.push(socket as TLSSocket);
        return socket;
      }),
    );
    expect(opened.filter((socket) => !socket.destroyed && (socket as TLSSocket).authorized)).toHaveLength(64);
  });

  it('is refused its port while another process has it, whether that one shares it or not', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void taken.close());
    const ports = [service.port, (taken.address() as { port: number }).port];
    for (const port of ports) {
      const { code, stderr } = await fuelProcess(['serve', '--role', 'api'], {
        dataDir: join(folder(), 'data'),
        env: { ...THREADS, FUEL_LISTEN: `127.0.0.1:${port}` },
      });
      expect(code).toBe(1);
      expect(stderr).toContain(`REFUSED: can't listen on 127.0.0.1:${port}: name another address`);
    }
  });

  it('shows a renewed certificate on every thread, and when the one that is shown ends', async () => {
    const pathOf = (file: string) => join(service.dataDir, file);
    const ends = async () => {
      const { status, text } = await service.ops('/metrics');
      return [status, Number(/^fuel_certificate_end_timestamp_seconds (.+)$/m.exec(text)?.[1])];
    };
    const endOf = (pem: string) => new X509Certificate(pem).validToDate.getTime() / 1000;
    const [shown, renewed] = [readFileSync(pathOf('tls-cert.pem'), 'utf8'), await makeCertificate()];
    writeFileSync(pathOf('tls-key.pem'), renewed.key);
    await service.logged(({ msg }) => String(msg).startsWith('changed certificate not usable'));
    expect(await ends()).toEqual([200, endOf(shown)]);
    writeFileSync(pathOf('tls-cert.pem'), renewed.cert);
    await service.logged((line) => line.msg === 'certificate reloaded');
    expect(await ends()).toEqual([200, endOf(renewed.cert)]);
    const { fingerprint256 } = new X509Certificate(renewed.cert);
    await until(async () => {
      const seen = await Promise.all(Array.from({ length: CONNECTIONS }, () => fingerprintOf(service.port)));
      return seen.every((fingerprint) => fingerprint === fingerprint256);
    }, 5_000);
    const lines = service.logLines.filter(({ msg }) => msg === 'certificate reloaded');
    expect(new Set(lines.map(({ thread }) => thread))).toEqual(new Set([undefined])); // one watches for all
  });

  it('answers the requests in progress on all threads when it is asked to stop, and ends with 0', async () => {
    const request = `GET /api/v1/integration/transactions?${SEPTEMBER} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;
    const connections = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => openConnection(service.port, { ca: service.ca })),
    );
    const linesBefore = service.logLines.length;
    for (const { socket } of connections) socket.write(request);
    await until(async () => service.logLines.slice(linesBefore).some(({ msg }) => msg === 'request'), 5_000);
    service.signal('SIGTERM');
    const received = await Promise.all(connections.map((connection) => connection.received));
    const answers = received.filter((text) => text !== '').map(parseAnswer); // the others were not read yet
    expect(answers.length).toBeGreaterThan(0);
    for (const { status, headers, body } of answers) {
      expect([200, 503]).toContain(status);
      expect(Buffer.byteLength(body)).toBe(Number(headers.get('content-length')));
    }
    expect(await service.ended()).toBe(0);
    expect(service.logLines.at(-1)?.msg).toBe('stopped');
  });
});

function fingerprintOf(port: number): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });
}
