/**
 * `npm run test:image` does what `docker build` and `docker run` would do with the Dockerfile, in an empty folder and
 * without Docker. Each stage is a folder that stands for its root, and paths from the root in the instructions are
 * paths in that folder. Then the entry point runs, the health check asks it, and SIGTERM ends it.
 *
 * With EVENTSTORE_URL and MONGODB_URL set the service runs on these engines, else on the embedded store.
 *
 * What it can't show: the base image itself, and another machine's C library.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from './compose-file.ts';
import { copiedFiles, environmentOf, lastOf, readCopy, readDockerfile, type Stage } from './dockerfile.ts';

/** The user `node` of the base image. */
const NODE_USER = { uid: 1000, gid: 1000 };
const READY_WITHIN_MS = 30_000;
const ENDED_WITHIN_MS = 30_000;
const isRoot = process.getuid?.() === 0;

const folder = mkdtempSync(join(tmpdir(), 'fuel-image-'));
const roots = new Map<string | undefined, string>();
const say = (text: string): void => console.log(text);

/** Makes a root with the pinned Node in it, like that of the base image. */
function emptyRoot(name: string): string {
  const root = join(folder, name);
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
  return root;
}

function build(stage: Stage, root: string): void {
  let directory = '/';
  for (const { name, text } of stage.instructions) {
    if (name === 'WORKDIR') {
      directory = text;
      mkdirSync(join(root, directory), { recursive: true });
    }
    if (name === 'COPY') copy(text, { root, directory });
    if (name === 'RUN') run(text, { root, directory });
    if (name === 'WORKDIR' || name === 'COPY' || name === 'RUN') say(`  ${name} ${text}`);
  }
}

interface Place {
  readonly root: string;
  readonly directory: string;
}

function copy(text: string, { root, directory }: Place): void {
  const step = readCopy(text);
  const target = join(root, step.target.startsWith('/') ? '' : directory, step.target);
  if (step.from !== undefined) {
    const from = roots.get(step.from);
    if (from === undefined) throw new Error(`there is no stage ${step.from}`);
    for (const source of step.sources)
      cpSync(join(from, source), target, { recursive: true, verbatimSymlinks: true });
    return;
  }
  const [source = ''] = step.sources;
  const isFolder = step.sources.length === 1 && statSync(join(ROOT, source)).isDirectory();
  const isInto = step.target.endsWith('/');
  for (const file of copiedFiles(ROOT, step)) {
    const to = isFolder
      ? join(target, file.slice(source.length))
      : isInto
        ? join(target, basename(file))
        : target;
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(ROOT, file), to);
  }
}

function run(text: string, { root, directory }: Place): void {
  const inRoot = text.replace(/(?<=\s)\/(?=\w)/g, `${root}/`);
  const asNumbers = inRoot.replace('node:node', `${NODE_USER.uid}:${NODE_USER.gid}`);
  const command = isRoot ? asNumbers : asNumbers.replace(/chown \S+/, 'test -e');
  execFileSync('/bin/sh', ['-c', command], {
    cwd: join(root, directory),
    stdio: ['ignore', 'ignore', 'inherit'],
    // The environment contains the machine's own settings for npm, such as its proxy and authorities.
    env: { ...process.env, PATH: `${join(root, 'usr/local/bin')}:${process.env.PATH}` },
  });
}

async function start(stage: Stage, root: string): Promise<void> {
  const ports = [await freePort(), await freePort()];
  const { EVENTSTORE_URL = '', MONGODB_URL = '' } = process.env;
  const env = {
    ...environmentOf(stage),
    EVENTSTORE_URL,
    MONGODB_URL,
    FUEL_DATA_DIR: join(root, environmentOf(stage).FUEL_DATA_DIR ?? ''),
    FUEL_LISTEN: `127.0.0.1:${ports[0]}`,
    FUEL_OPS_LISTEN: `127.0.0.1:${ports[1]}`,
    PATH: `${join(root, 'usr/local/bin')}:/usr/bin:/bin`,
  };
  const options = { cwd: join(root, 'app'), env, ...(isRoot ? NODE_USER : {}) };
  const [program = ''] = JSON.parse(lastOf(stage, 'ENTRYPOINT'));
  const child = spawn(join(root, program), JSON.parse(lastOf(stage, 'CMD')), { ...options, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  try {
    const [, check = ''] = lastOf(stage, 'HEALTHCHECK').split(' CMD ');
    const [node = '', script = '', path = ''] = JSON.parse(check);
    const asks = (what: string) =>
      spawnSync(join(root, 'usr/local/bin', node), [join(root, script), what], options).status;
    await untilHolds(() => asks(path) === 0, child);
    await untilHolds(() => asks('/readyz') === 0, child);
    say(`  HEALTHCHECK ${path} and /readyz: 0, as ${isRoot ? `user ${NODE_USER.uid}` : 'this user'}`);
    const version = execFileSync(join(root, 'usr/local/bin/fuel'), ['--version'], {
      ...options,
      encoding: 'utf8',
    });
    say(`  fuel --version: ${version.trim()}`);
    child.kill('SIGTERM');
    const code = await endOf(child);
    if (code !== 0) throw new Error(`SIGTERM ended it with ${code}`);
    say('  SIGTERM: ended with 0');
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`what the service wrote:\n${output}`, { cause: error });
  }
}

async function untilHolds(holds: () => boolean, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!holds()) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    if (Date.now() > deadline) throw new Error(`not within ${READY_WITHIN_MS / 1_000} s`);
    await sleep(100);
  }
}

async function endOf(child: ChildProcess): Promise<number | null> {
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(ENDED_WITHIN_MS) });
  return code;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

try {
  chmodSync(folder, 0o755);
  if (isRoot) chownSync(folder, NODE_USER.uid, NODE_USER.gid);
  const stages = readDockerfile(ROOT);
  for (const [index, stage] of stages.entries()) {
    say(`FROM ${stage.image}${stage.name === undefined ? '' : ` AS ${stage.name}`}`);
    const root = emptyRoot(`stage-${index}`);
    roots.set(stage.name, root);
    build(stage, root);
  }
  const image = stages.at(-1);
  if (image === undefined) throw new Error('the Dockerfile has no stage');
  await start(image, join(folder, `stage-${stages.length - 1}`));
  const size = execFileSync('du', ['-sm', join(folder, `stage-${stages.length - 1}`, 'app')], {
    encoding: 'utf8',
  });
  say(`/app takes ${size.split('\t')[0]} MB`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
