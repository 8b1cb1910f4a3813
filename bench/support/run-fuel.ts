import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { peakResidentMb } from './process-figures.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Runs `fuel … < file` to its end. It must exit with 0. */
export async function runFuel(
  args: readonly string[],
  {
    dataDir,
    stdin,
    env = {},
  }: {
    readonly dataDir: string;
    readonly stdin: string;
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<{ readonly peakMb: number; readonly tookMs: number }> {
  const startedAtMs = performance.now();
  const input = openSync(stdin, 'r');
  const command = spawn(join(ROOT, 'bin/fuel'), args, {
    env: { ...process.env, ...env, FUEL_DATA_DIR: dataDir },
    stdio: [input, 'ignore', 'inherit'],
  });
  closeSync(input);
  const kill = (): boolean => command.kill('SIGKILL');
  process.once('exit', kill);
  let peakMb = 0;
  const watch = setInterval(() => {
    peakMb = peakResidentMb(command.pid ?? Number.NaN) ?? peakMb;
  }, 50);
  const [exitCode] = await once(command, 'exit');
  clearInterval(watch);
  process.off('exit', kill);
  if (exitCode !== 0) throw new Error(`fuel ${args.join(' ')} ended with ${exitCode}`);
  return { peakMb, tookMs: performance.now() - startedAtMs };
}
