import { execFile } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { folder, ServiceProcess } from '../support/service/service-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

it('the commands of the README, from opening an account to the first pull, do as written what they say', async () => {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const section = text.slice(text.indexOf('## Run it'));
  const [, provision = '', pull = ''] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(
    ([, block = '']) => block,
  );
  expect([provision, pull]).toEqual([
    expect.stringContaining('key issue'),
    expect.stringContaining('curl --cacert data/tls-cert.pem'),
  ]);
  // As a clone: the data directory and the sample file are found from where the commands run.
  const clone = join(folder(), 'clone');
  for (const part of ['bin', 'src', 'projections', 'examples', 'package.json'])
    cpSync(join(ROOT, part), join(clone, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  const service = await new ServiceProcess({ dataDir: join(clone, 'data') }).start();
  const script = `set -euo pipefail\n${provision}${pull.replaceAll('127.0.0.1:8443', `127.0.0.1:${service.port}`)}`;
  const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' };
  const { stdout } = await run('bash', ['-c', script], { cwd: clone, env });
  expect(stdout).toContain('recorded 2, unchanged 0, refused 0');
  expect(stdout).toContain('"number_plate":"ABC 123"');
});
