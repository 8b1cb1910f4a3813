import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { confirmed, idsOf, linesOf, openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const SIZE = 12 * 1024 * 1024;
/** Longer than a process that can't report itself counts as alive. */
const UNREPORTED_MS = 8_000;

const disk = folder();
const isMounted = mount();
if (!isMounted) process.stdout.write('not tested here: a full disk (needs the right to mount a tmpfs)\n');

function mount(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=700`, 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.runIf(isMounted && !onServers)('a service whose disk is full', () => {
  const service = new ServiceProcess({ dataDir: disk });
  const filler = join(disk, 'filler');
  const ready = async () => {
    const response = await fetch(`${service.opsUrl}/readyz`);
    return { status: response.status, body: await response.text() };
  };
  const text = async (path: string) => (await fetch(`${service.opsUrl}${path}`)).text();
  let key = '';

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
    await service.done(['transaction', 'import', '-', '--wait'], { stdin: linesOf([confirmed(1)]) });
  });
  afterAll(async () => {
    await service.stop();
    execFileSync('umount', [disk]);
  });

  it('says so at once, with the folder, in readiness, metrics and the console, and how long pulls are answered', async () => {
    expect((await ready()).status).toBe(200);
    try {
      writeFileSync(filler, Buffer.alloc(SIZE));
    } catch {
      // until nothing is left
    }
    const { status, body } = await ready();
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({
      checks: { disk: false },
      reasons: { disk: expect.stringMatching(`the disk of ${disk} is full: \\d+ KiB .* as long as`) },
    });
    expect(await text('/metrics')).toMatch(/^fuel_disk_refuses_commits 1$/m);
    expect(await text('/')).toContain(`the disk of ${disk} is full`);
    const lines = linesOf(Array.from({ length: 200 }, (_, at) => confirmed(100 + at)));
    const refused = await service.fuel(['transaction', 'import', '-'], { stdin: lines });
    expect(refused.code).toBe(1);
  });

  it('goes on answering pulls, though it cannot report itself to other processes', async () => {
    const startMs = performance.now();
    const statuses = new Set<number>();
    await until(async () => {
      statuses.add((await service.get(`/transactions?${SEPTEMBER}`, { key })).status);
      return performance.now() - startMs > UNREPORTED_MS;
    }, 2 * UNREPORTED_MS);
    expect([...statuses]).toEqual([200]);
    const found = (await text('/')).match(/id="attention-[^"]*" class="bad"/g);
    expect(found).toEqual(['id="attention-disk" class="bad"']);
    const { lines } = await service.fuel(['doctor', '--json']);
    const wrong = (lines as { ok: boolean; check: string }[]).filter(({ ok }) => !ok);
    expect(wrong.map(({ check }) => check)).toEqual(['disk-space']);
  });

  it('is ready again once there is space, and records', async () => {
    rmSync(filler);
    await until(async () => (await ready()).status === 200);
    await service.done(['transaction', 'import', '-', '--wait'], { stdin: linesOf([confirmed(2)]) });
    expect(idsOf((await service.get(`/transactions?${SEPTEMBER}`, { key })).body)).toEqual([2, 1]);
  });
});
