import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ComposeService } from '../deploy/compose-file.ts';
import { docker } from './docker.ts';

const HEALTHY_WITHIN_MS = 120_000;
const LOOK_MS = 500;

/** Waits until the health check of docker-compose.yml succeeds in the container. Throws the end of its log if it is not in time. */
async function untilHealthy(container: string, { healthcheck }: ComposeService): Promise<void> {
  const deadline = Date.now() + HEALTHY_WITHIN_MS;
  const [, ...check] = healthcheck?.test ?? [];
  for (;;) {
    try {
      docker('exec', container, ...check);
      return;
    } catch (cause) {
      const isRunning = docker('inspect', '--format', '{{.State.Running}}', container) === 'true';
      if (!isRunning || Date.now() > deadline)
        throw new Error(`${container} is not healthy: ${lastLines(container)}`, { cause });
    }
    await sleep(LOOK_MS);
  }
}

function lastLines(container: string): string {
  const logs = ['logs', '--tail', '10', container];
  const { stdout, stderr } = spawnSync('docker', logs, { encoding: 'utf8' });
  return stdout + stderr;
}

/** Returns the arguments that confine a container as docker-compose.yml does. */
function confined(service: ComposeService): string[] {
  const each = (option: string, values: readonly string[] = []) => values.flatMap((value) => [option, value]);
  return [
    ...(service.read_only ? ['--read-only'] : []),
    ...each('--cap-drop', service.cap_drop),
    ...each('--cap-add', service.cap_add),
    ...each('--security-opt', service.security_opt),
    ...each('--tmpfs', service.tmpfs),
    ...Object.entries(service.environment ?? {}).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
  ];
}

/**
 * Starts a service of docker-compose.yml with its rights on new volumes, restarts it, and replaces its container by another
 * one on the same volumes, as `docker compose restart`, and then `down` and `up`, do.
 */
export async function restartOnUsedVolumes(name: string, service: ComposeService): Promise<void> {
  const container = `fuel-restart-${name}-${process.pid}`;
  const volumes = (service.volumes ?? []).map((volume) => `${container}-${volume}`);
  const start = (): Promise<void> => {
    const mounts = volumes.flatMap((volume) => ['--volume', volume]);
    const run = ['run', '--detach', '--name', container, '--hostname', name, ...confined(service), ...mounts];
    docker(...run, service.image, ...(service.command ?? []));
    return untilHealthy(container, service);
  };
  try {
    await start();
    docker('restart', container);
    await untilHealthy(container, service);
    docker('rm', '--force', container);
    await start();
  } finally {
    docker('rm', '--force', container);
    for (const volume of volumes) docker('volume', 'rm', '--force', volume.split(':')[0] ?? '');
  }
}
