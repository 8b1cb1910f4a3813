import { execFileSync, spawnSync } from 'node:child_process';

/** Whether a Docker daemon answers. */
export function dockerAnswers(): boolean {
  return spawnSync('docker', ['version'], { stdio: 'ignore' }).status === 0;
}

/**
 * Of these images those that are on this machine, each with its id, pulled where a registry has it. An image under the
 * tag counts, whoever made it.
 */
export function imagesHere(names: readonly string[]): Map<string, string> {
  const here = new Map<string, string>();
  for (const name of names) {
    if (!isHere(name)) spawnSync('docker', ['pull', '--quiet', name], { stdio: 'ignore', timeout: 300_000 });
    if (isHere(name)) here.set(name, docker('image', 'inspect', '--format', '{{.Id}}', name));
  }
  return here;
}

/** What a docker command prints, without the last line's end. Throws what it wrote where it failed. */
export function docker(...args: readonly string[]): string {
  return execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

function isHere(name: string): boolean {
  return spawnSync('docker', ['image', 'inspect', name], { stdio: 'ignore' }).status === 0;
}
