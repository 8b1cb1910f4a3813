/**
 * `npm run test:image`: builds the image and runs it as docker-compose.yml does. It needs a Docker daemon that has the base
 * image, or can pull it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../deploy/compose-file.ts';
import { readDockerfile } from '../deploy/dockerfile.ts';
import { docker, dockerAnswers, imagesHere } from './docker.ts';

const TAG = 'fuel-integration:test-image';
const READY_WITHIN_MS = 90_000;
const CONFINED = ['--init', '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL'];

async function untilReady(container: string): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      docker('exec', container, 'node', '/app/deploy/health-check.js', '/readyz');
      return;
    } catch (cause) {
      const running = docker('inspect', '--format', '{{.State.Running}}', container) === 'true';
      if (!running || Date.now() > deadline)
        throw new Error(`not ready: ${docker('logs', container)}`, { cause });
    }
    await sleep(500);
  }
}

async function buildAndRun(): Promise<void> {
  // With the host's network, the build reaches a registry like npm on this machine.
  docker('build', '--network', 'host', '--tag', TAG, ROOT);
  console.log(`built ${TAG}`);
  const container = docker('run', '--detach', ...CONFINED, '--security-opt', 'no-new-privileges', TAG);
  try {
    await untilReady(container);
    console.log(`ready; fuel --version: ${docker('exec', container, 'fuel', '--version')}`);
    docker('exec', container, 'fuel', 'account', 'open', '7', '--name', 'North Haulage');
    console.log('a command recorded an event');
    docker('stop', '--time', '30', container);
    const code = docker('inspect', '--format', '{{.State.ExitCode}}', container);
    if (code !== '0') throw new Error(`SIGTERM ended it with ${code}: ${docker('logs', container)}`);
    console.log('SIGTERM: ended with 0');
  } finally {
    docker('rm', '--force', '--volumes', container);
  }
}

const bases = [...new Set(readDockerfile(ROOT).map(({ image }) => image))];
if (!dockerAnswers()) throw new Error('no Docker daemon answers: the image is built and run by one');
const here = imagesHere(bases);
if (here.size < bases.length)
  throw new Error(`${bases.join(', ')} is neither on this machine nor in a registry that it reaches`);
console.log(`on Docker, base ${[...here].map((each) => each.join(' ')).join(', ')}`);
await buildAndRun();
