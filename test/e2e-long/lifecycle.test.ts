import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { exchange, openConnection, parseAnswer } from '../support/service/raw-connection.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { confirmed, importEvents, openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
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
    });
    const threads = ['main', 'projector', 'webhooks'].map(
      (name) => `fuel_event_loop_delay_seconds{thread="${name}"}`,
    );
    const followers = ['transactions', 'deliveries', 'notices'].map(
      (name) => `fuel_follower_lag_seconds{follower="${name}"} 0`,
    );
    await until(async () => {
      const { text } = await service.ops('/metrics');
      return [...threads, ...followers].every((line) => text.includes(line));
    });
    expect((await service.ops('/nowhere')).status).toBe(404);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'ends on %s with 0, although clients are connected',
    async (signal) => {
      const service = await new ServiceProcess().start();
      const idle = await openConnection(service.port, { ca: service.ca });
      await service.get('/transactions'); // leaves a kept connection behind
      service.signal(signal);
      if (signal === 'SIGHUP') service.signal(signal); // the kernel sends one and the shell another
      expect(await service.ended()).toBe(0);
      idle.socket.destroy();
    },
  );

  it('ends with 0 within 10 s after whichever line of its start it is stopped', async () => {
    const service = new ServiceProcess();
    let isStarted = false;
    for (let lines = 1; !isStarted; lines++) {
      service.launch({ FUEL_LOG_LEVEL: 'debug' });
      await service.logged(() => service.logLines.length >= lines);
      isStarted = service.logLines.some(({ msg }) => msg === 'listening');
      const asked = Date.now();
      service.signal('SIGTERM');
      expect(await service.ended(), service.output).toBe(0);
      expect(Date.now() - asked, service.output).toBeLessThan(10_000);
    }
  });

  it('answers the requests in progress before it ends, to the last byte, also to a slow reader', async () => {
    const service = await new ServiceProcess().start();
    const { key } = await openAccount(service);
    // The records are so large that a page does not fit into the buffers between the service and its client.
    const name = '𝐍'.repeat(1_000);
    const named = { id: 1, name };
    const large = {
      corporate: named,
      corporate_group: named,
      driver: named,
      station: { ...named, provider: named },
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
});
