import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { folder, fuelProcess, startFuel } from '../support/service/commands.ts';
import { until } from '../support/waiting.ts';

/** How it is used is test/e2e-long/guide.test.ts; what it does is test/customers/mock. */
it.skipIf(onServers)(
  'fuel mock says where it is, and leaves nothing when it ends, or cannot start',
  async () => {
    const temporary = join(folder(), 'tmp'); // in place of the system's temporary folder
    mkdirSync(temporary);
    const options = { dataDir: join(temporary, 'unused'), env: { TMPDIR: temporary } };
    const mock = startFuel(['mock', '--port', '0', '--json'], options);
    await until(() => mock.stdout().includes('\n'));
    const shown = JSON.parse(mock.stdout());
    const { stdout: help } = await fuelProcess(['mock', '--help'], options);
    const named = /--json {5}([a-z_, \n]+)\n {2}otherwise/.exec(help)?.[1]?.split(/,\s+/) ?? [];
    expect(Object.keys(shown).toSorted()).toEqual(named.toSorted());
    expect(existsSync(shown.ca_file)).toBe(true);
    expect(readdirSync(temporary).filter((name) => name.startsWith('fuel-mock-')).length).toBe(1);

    const body = new URLSearchParams({ kind: 'late', url: `http://localhost:${await lastingPort()}/` });
    const answer = await fetch(`${shown.control_url}/send`, { method: 'POST', body });
    expect(await answer.json()).toMatchObject({
      sent: [{ as_expected: false, status: null, error: expect.stringContaining('ECONNREFUSED') }],
    });

    const { port } = new URL(shown.base_url);
    const second = await fuelProcess(['mock', '--port', port], options);
    expect([second.code, second.stdout]).toEqual([1, '']);
    expect(second.stderr).toMatch(/^fuel: Can't listen on 127\.0\.0\.1:\d+/);

    mock.child.kill('SIGINT');
    expect(await mock.result).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(temporary)).toEqual([]);
  },
);
