import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder, fuel } from '../support/service/commands.ts';
import { exchange, openConnection, parseAnswer } from '../support/service/raw-connection.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const PATH = `/api/v1/integration/transactions?${SEPTEMBER}&limit=100`;

describe('fuel serve', () => {
  it('creates its certificate, keys and files for its own user only', async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, 'made-before'), { mode: 0o755 });
    const service = await new ServiceProcess({
      dataDir: join(dataDir, 'made-before'),
      makesCertificate: true,
    }).start();
    await service.done(['account', 'open', '7', '--name', 'Seven']);
    const open = readdirSync(service.dataDir).filter(
      (name) => (statSync(join(service.dataDir, name)).mode & 0o077) !== 0,
    );
    expect(open).toEqual([]);
    const fresh = await new ServiceProcess({ makesCertificate: true }).start();
    expect(statSync(fresh.dataDir).mode & 0o777).toBe(0o700);
  });

  it('shows health, readiness and metrics on the operations listener alone', async () => {
    const service = await new ServiceProcess().start();
    expect((await service.ops('/healthz')).status).toBe(200);
    expect((await service.ops('/readyz')).status).toBe(200);
    await service.get('/transactions');
    expect((await service.ops('/metrics')).headers['content-type']).toMatch(/^text\/plain/);
    await until(async () => {
      const { text } = await service.ops('/metrics');
      return /\{[^}]*status="401"[^}]*\} 1/.test(text);
    }, 5_000);
    const threads = ['main', 'projector', 'webhooks'].map(
      (name) => `fuel_event_loop_delay_seconds{thread="${name}"}`,
    );
    const followers = ['transactions', 'deliveries', 'notices'].map(
      (name) => `fuel_follower_lag_seconds{follower="${name}"} 0`,
    );
    await until(async () => {
      const { text } = await service.ops('/metrics');
      return [...threads, ...followers].every((line) => text.includes(line));
    }, 10_000);
    expect((await service.ops('/nowhere')).status).toBe(404);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends on %s with 0, although clients are connected',
    async (signal) => {
      const service = await new ServiceProcess().start();
      const idle = await openConnection(service.port, { ca: service.ca });
      await service.get('/transactions'); // leaves a kept connection behind
      const asked = Date.now();
      service.signal(signal);
      expect(await service.ended()).toBe(0);
      expect(Date.now() - asked).toBeLessThan(5_000);
      idle.socket.destroy();
    },
  );

  it('answers the requests in progress before it ends, to the last byte, also to a slow reader', async () => {
    const service = await new ServiceProcess().start();
    const { key } = await openAccount(service);
    // Records so large that a page does not fit into the buffers between the service and its client.
    const name = '𝐍'.repeat(1_000);
    const named = { id: 1, name };
    const large = {
      ...{ corporate: named, corporate_group: named, driver: named, station: { ...named, provider: named } },
      fuel: { type: named, liters: '1.00', price_per_liter: '1.00', amount: '1.00' },
      vehicle: {
        ...{
          id: 1,
          code: name,
          number_plate: name,
          chassis_number: name,
          brand: name,
          model: name,
          year: null,
        },
        department: named,
      },
    };
    await importEvents(
      service,
      Array.from({ length: 100 }, (_, index) => confirmed(1 + index, large)),
    );
    const { socket, received } = await openConnection(service.port, { ca: service.ca });
    socket.pause();
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`);
    await service.logged((line) => line.msg === 'request' && line.status === 200);
    service.signal('SIGTERM');
    await service.logged((line) => line.msg === 'asked to stop');
    await expect(exchange(service.port, '', { ca: service.ca })).resolves.toBe('');
    socket.resume();
    const { status, headers, body } = parseAnswer(await received);
    expect(status).toBe(200);
    expect(Buffer.byteLength(body)).toBe(Number(headers.get('content-length')));
    expect(JSON.parse(body).data).toHaveLength(100);
    expect(await service.ended()).toBe(0);
  });

  it('completes all of many requests when it is asked to stop', async () => {
    const service = await new ServiceProcess().start();
    const { key } = await openAccount(service);
    await importEvents(service, minutely(100));
    const request = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;
    const connections = await Promise.all(
      Array.from({ length: 20 }, () => openConnection(service.port, { ca: service.ca })),
    );
    for (const { socket } of connections) socket.write(request);
    await service.logged((line) => line.msg === 'request');
    service.signal('SIGTERM');
    for (const { received } of connections) {
      const text = await received;
      if (text === '') continue; // its request had not been read yet: the connection was closed unanswered
      const { status, headers, body } = parseAnswer(text);
      expect([200, 503]).toContain(status);
      expect(Buffer.byteLength(body)).toBe(Number(headers.get('content-length')));
    }
    expect(await service.ended()).toBe(0);
  });

  it('names the address that is taken, and ends with 1', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    for (const name of ['FUEL_LISTEN', 'FUEL_OPS_LISTEN']) {
      const { code, stdout, stderr } = await fuel(['serve'], {
        dataDir: join(folder(), 'data'),
        env: { [name]: `127.0.0.1:${port}` },
      });
      expect(code).toBe(1);
      expect(stdout + stderr).toContain(String(port));
    }
    taken.close();
  });

  it('names the setting when a certificate can not be used', async () => {
    const { code, stderr } = await fuel(['serve'], {
      dataDir: join(folder(), 'data'),
      env: { FUEL_TLS_CERT: '/nowhere/cert.pem', FUEL_TLS_KEY: '/nowhere/key.pem' },
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('FUEL_TLS_CERT')]);
  });

  it('shows an event that any process records within a second', async () => {
    const service = await new ServiceProcess().start();
    const { key } = await openAccount(service);
    await service.done(['transaction', 'import', '-'], { stdin: `${JSON.stringify(confirmed(501))}\n` });
    await until(async () => {
      const { body } = await service.get(`/transactions?${SEPTEMBER}`, { key });
      return idsOf(body).includes(501);
    }, 1_000);
  });
});
