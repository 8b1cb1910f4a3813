import { execFileSync, spawnSync } from 'node:child_process';

/** True if a Docker daemon answers. */
export function dockerAnswers(): boolean {
  return spawnSync('docker', ['version'], { stdio: 'ignore' }).status === 0;
}

/**
 * Returns the images that are on this machine, each with its id, after pulling those that a registry has. Any image
 * with the tag counts, whoever built it.
 */
export function imagesHere(names: readonly string[]): Map<string, string> {
  const here = new Map<string, string>();
  for (const name of names) {
    if (!isHere(name)) spawnSync('docker', ['pull', '--quiet', name], { stdio: 'ignore', timeout: 300_000 });
    if (isHere(name)) here.set(name, docker('image', 'inspect', '--format', '{{.Id}}', name));
  }
  return here;
}

/** Returns what a docker command prints, without the last line feed. If it fails, throws what it wrote. */
export function docker(...args: readonly string[]): string {
  return execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

function isHere(name: string): boolean {
  return spawnSync('docker', ['image', 'inspect', name], { stdio: 'ignore' }).status === 0;
}
