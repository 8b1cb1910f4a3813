import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/engines/engines.ts';
import { ROOT } from './compose-file.ts';
import { copiedFiles, environmentOf, lastOf, readCopy, readDockerfile, readIgnore } from './dockerfile.ts';

const stages = readDockerfile(ROOT);
const image = stages.at(-1);
if (image === undefined) throw new Error('the Dockerfile has no stage');
const copies = image.instructions.filter(({ name }) => name === 'COPY').map(({ text }) => readCopy(text));
const files = new Set(
  copies.filter(({ from }) => from === undefined).flatMap((copy) => copiedFiles(ROOT, copy)),
);

/** Returns the files that one file loads, by import, as the entry of a thread, or as a file next to it. */
function loadedBy(path: string): string[] {
  const text = readFileSync(join(ROOT, path), 'utf8');
  return [
    ...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g),
    ...text.matchAll(/new URL\('(\.[^']+)', import\.meta\.url\)/g),
  ].map(([, target = '']) => join(dirname(path), target));
}

function reachedFrom(entry: string): Set<string> {
  const reached = new Set([entry]);
  for (const path of reached) {
    if (path.endsWith('.ts')) for (const next of loadedBy(path)) reached.add(next);
  }
  return reached;
}

describe('the image', () => {
  it('runs the Node that the project pins', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    const [major, minor] = lock.packages['node_modules/node'].version.split('.');
    expect(stages.map((stage) => stage.image)).toEqual(stages.map(() => `node:${major}.${minor}-slim`));
  });

  it('holds everything that the command line loads', () => {
    const reached = reachedFrom('src/operator/cli/main.ts');
    expect(reached).toContain('src/operator/serve/thread.ts');
    expect(reached).toContain('package.json');
    expect([...reached].filter((path) => existsSync(join(ROOT, path)) && !files.has(path))).toEqual([]);
    expect(files).toContain('bin/fuel');
  });

  it('takes production dependencies alone, as the lock file has them', () => {
    const [dependencies] = stages;
    expect(dependencies && lastOf(dependencies, 'RUN')).toMatch(/^npm ci --omit=dev /);
    const modules = copies.find(({ from }) => from === dependencies?.name);
    expect(modules?.sources).toEqual(['/app/node_modules']);
  });

  it('leaves secrets, data and what only developers need behind', () => {
    const isIgnored = readIgnore(ROOT);
    const kept = [
      '.env',
      'data/master.key',
      '.git/config',
      'node_modules/koa/package.json',
      'tools/demo/demo.ts',
    ];
    expect(kept.filter((path) => !isIgnored(path))).toEqual([]);
    expect(['bin/fuel', 'src/engines/engines.ts', 'deploy/health-check.js'].filter(isIgnored)).toEqual([]);
    const unwanted = [...files].filter((path) => /^(?:test|bench|docs|examples)\//.test(path));
    expect(unwanted).toEqual(['docs/openapi.yaml']); // the operations listener serves it
  });

  it('does not run as root, and hands signals to the service itself', () => {
    expect(lastOf(image, 'USER')).toBe('node');
    expect(JSON.parse(lastOf(image, 'ENTRYPOINT'))).toEqual(['/app/bin/fuel']);
    expect(JSON.parse(lastOf(image, 'CMD'))).toEqual(['serve']);
    expect(readFileSync(join(ROOT, 'bin/fuel'), 'utf8')).toMatch(/^exec "\$node"/m);
  });

  it('listens where other containers reach it, and keeps its data in a volume', () => {
    const environment = environmentOf(image);
    const config = loadConfig(environment, 'serve');
    expect(environment.NODE_ENV).toBe('production');
    expect([config.FUEL_LISTEN.host, config.FUEL_OPS_LISTEN.host]).toEqual(['0.0.0.0', '0.0.0.0']);
    const exposed = lastOf(image, 'EXPOSE').split(' ').map(Number);
    expect(exposed).toEqual([config.FUEL_LISTEN.port, config.FUEL_OPS_LISTEN.port]);
    expect(JSON.parse(lastOf(image, 'VOLUME'))).toEqual([config.FUEL_DATA_DIR]);
  });

  it('is checked for life, not for readiness, by a file that is in it', () => {
    const [, command = ''] = lastOf(image, 'HEALTHCHECK').split(' CMD ');
    const [program, script = '', path] = JSON.parse(command);
    expect([program, path]).toEqual(['node', '/healthz']);
    expect(files).toContain(script.replace(/^\/app\//, ''));
  });
});

describe('the health check', () => {
  async function operations(status: number): Promise<number> {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/readyz' ? status : 404).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  async function check(port: number, path: string): Promise<number> {
    const child = spawn(process.execPath, [join(ROOT, 'deploy/health-check.js'), path], {
      env: { FUEL_OPS_LISTEN: `0.0.0.0:${port}` },
      stdio: 'ignore',
    });
    const [code] = await once(child, 'close');
    return code;
  }

  it('ends with 0 only where the answer is 200', async () => {
    const [ready, unready] = await Promise.all([operations(200), operations(503)]);
    const codes = await Promise.all([check(ready, '/readyz'), check(unready, '/readyz'), check(ready, '/x')]);
    expect(codes).toEqual([0, 1, 1]);
  });

  it('ends with 1 where nobody listens', async () => {
    expect(await check(1, '/healthz')).toBe(1);
  });
});
