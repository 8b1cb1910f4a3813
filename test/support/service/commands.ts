import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atEndOfFile } from '../end-of-file.ts';
import { withEngines } from '../engines/test-engines.ts';
import { type CommandResult, commandResult } from './command-result.ts';
import { runInProcess } from './in-process.ts';

const BIN = fileURLToPath(new URL('../../../bin/fuel', import.meta.url));

export type Env = Readonly<Record<string, string>>;

const folders: string[] = [];
const children = new Set<ChildProcess>();

atEndOfFile(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([...children].map((child) => once(child, 'close')));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Makes a new folder, which is removed when the tests of the file are over. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'fuel-e2e-'));
  folders.push(path);
  return path;
}

/** The environment of every process of a test: free ports, and none of the developer's own settings. */
function environment(dataDir: string, env: Env): Env {
  return {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    FUEL_DATA_DIR: dataDir,
    FUEL_LISTEN: '127.0.0.1:0',
    FUEL_OPS_LISTEN: '127.0.0.1:0',
    FUEL_STOP_DELAY: '0s',
    ...withEngines(dataDir, env),
  };
}

interface CommandOptions {
  readonly dataDir: string;
  readonly env?: Env | undefined;
  readonly stdin?: string | Buffer | undefined;
  /** The file descriptor of a listening socket, passed as systemd does. */
  readonly socket?: number | undefined;
}

export interface RunningCommand {
  readonly child: ChildProcess;
  readonly result: Promise<CommandResult>;
  /** Returns the standard output so far. */
  readonly stdout: () => string;
}

/** Starts `bin/fuel`, which is killed when the tests of the file are over. `ended` resolves with its exit code. */
export function spawnFuel(args: readonly string[], { dataDir, env = {}, socket }: CommandOptions) {
  const passed = socket === undefined ? [] : [socket];
  // systemd names the process that its socket is for; `exec` keeps its number.
  const child = spawn('/bin/sh', ['-c', 'LISTEN_PID=$$ exec "$0" "$@"', BIN, ...args], {
    env: { ...environment(dataDir, env), LISTEN_FDS: String(passed.length) },
    stdio: ['pipe', 'pipe', 'pipe', ...passed],
  }) as ChildProcessWithoutNullStreams;
  children.add(child);
  return { child, ended: closed(child) };
}

/** Runs `bin/fuel` in a separate process and collects its output. */
export function startFuel(args: readonly string[], options: CommandOptions): RunningCommand {
  const { child, ended } = spawnFuel(args, options);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined); // a command that refuses may end before it has read its input
  child.stdin.end(options.stdin ?? '');
  const result = ended.then((code) => commandResult(code, { stdout, stderr }));
  return { child, result, stdout: () => stdout };
}

/** Runs `bin/fuel` to its end in a separate process. */
export function fuelProcess(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return startFuel(args, options).result;
}

/** Runs a command to its end in this process, one at a time, which is quicker. `serve` gets a separate process. */
export function fuel(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  if (args[0] === 'serve') return fuelProcess(args, options);
  const { dataDir, env = {}, stdin } = options;
  return runInProcess(args, { env: environment(dataDir, env), stdin });
}

function closed(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
}
