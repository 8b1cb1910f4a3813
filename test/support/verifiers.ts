import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, readDocument } from './documents.ts';

export const VERIFY = 'docs/guide/verify';
/** The program that runs each file, with the arguments before the file's own. */
export const VERIFIERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'verify.ts': [process.execPath],
  'verify.py': ['python3'],
  'Verify.java': ['java', '-XX:TieredStopAtLevel=1'],
  'Verify.cs': ['dotnet', 'run'],
  'verify.php': ['php'],
  'verify.go': ['go', 'run'],
};

interface SignedRequest {
  readonly secret: string;
  readonly body: string;
  readonly header: string;
  /** The time in Unix seconds; by default the real time. */
  readonly now?: number;
}

type Refused = Partial<SignedRequest> & { readonly because: string };

const { refused, ...vector }: Required<SignedRequest> & { readonly refused: readonly Refused[] } = JSON.parse(
  readDocument(`${VERIFY}/vector.json`),
);

/** The test vector for customers' implementations. */
export const VECTOR = vector;

/** Returns the files whose languages are installed on this machine. A line names the others. */
export function installed(files: readonly string[]): string[] {
  const found = files.filter((file) => {
    const [program = ''] = VERIFIERS[file] ?? [];
    return spawnSync(program, [program === 'go' ? 'version' : '--version']).error === undefined;
  });
  const missing = files.filter((file) => !found.includes(file));
  if (missing.length > 0) {
    const why =
      'their languages are not installed; what they contain is checked by test/docs/verify.slow.test.ts';
    process.stdout.write(`not run here: ${missing.join(', ')}: ${why}\n`);
  }
  return found;
}

/** Returns the file's verdict on a request: `genuine` or `not genuine`. Throws if the file does not run. */
export function judgement(file: string, { secret, body, header, now }: SignedRequest): string {
  const [program = '', ...before] = VERIFIERS[file] ?? [];
  const after = program === 'dotnet' ? ['--'] : [];
  const args = [...before, join(ROOT, VERIFY, file), ...after, secret, header, ...(now ? [String(now)] : [])];
  const env = { ...process.env, DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1' };
  const { status, stdout, stderr } = spawnSync(program, args, { input: body, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}${stdout}`);
  return stdout.trim();
}

/** Requests, each with what is told about it and the right verdict. The published file has those that must be refused. */
export const JUDGED: readonly (readonly [what: string, request: SignedRequest, expected: string])[] = [
  ['the published vector', VECTOR, 'genuine'],
  ['it, five minutes later', { ...VECTOR, now: VECTOR.now + 300 }, 'genuine'],
  ['it, five minutes earlier', { ...VECTOR, now: VECTOR.now - 300 }, 'genuine'],
  ['it, with white space around the secret', { ...VECTOR, secret: ` ${VECTOR.secret}\n` }, 'genuine'],
  ['it, judged now', { secret: VECTOR.secret, body: VECTOR.body, header: VECTOR.header }, 'not genuine'],
  ...refused.map(({ because, ...wrong }) => [because, { ...VECTOR, ...wrong }, 'not genuine'] as const),
];
