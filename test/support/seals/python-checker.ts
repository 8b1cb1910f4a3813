import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const CHECK = join(import.meta.dirname, '../../../docs/audit/check.py');

/** The script needs one package that Python does not include. */
export const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0;
if (!hasPython) console.log('not run here: docs/audit/check.py, since python3 has no package cryptography');

/** Loads the script once, since that takes half a second, and runs it for each line of JSON with its arguments. */
const RUNNER = `
import contextlib, importlib.util, io, json, sys
spec = importlib.util.spec_from_file_location("check", sys.argv[1])
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
for line in sys.stdin:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            status = check.main(*json.loads(line))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else print(end.code) or 1
    print(json.dumps({"status": status, "text": text.getvalue()}), flush=True)
`;

/** Runs docs/audit/check.py for one export after the other, in one process of Python. */
export class PythonChecker {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    const child = spawn('python3', ['-c', RUNNER, CHECK], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  /** Returns the exit code that the script would have for this folder, and what it prints. */
  async check(folder: string, keys: string): Promise<{ readonly status: number; readonly text: string }> {
    this.#child.stdin?.write(`${JSON.stringify([folder, keys])}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the script has ended');
    return JSON.parse(value);
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
  }
}
