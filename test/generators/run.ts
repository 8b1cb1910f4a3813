/**
 * `npm run test:generators`: makes clients from docs/openapi.yaml with Kiota and NSwag, compiles those in C#, and compares
 * two pages that these pull from `fuel mock` with the text of the API. It needs the .NET SDK, and NuGet for the generators
 * and their libraries; without one of them it says so, and checks nothing.
 */
import { deepStrictEqual } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../support/documents.ts';
import { pulledLines } from './pulled-lines.ts';

const DOCUMENT = join(ROOT, 'docs/openapi.yaml');
/** NuGet itself would try for minutes. */
const FETCHED_WITHIN_MS = 120_000;
const DONE_WITHIN_MS = 180_000;
const MOCK_READY_WITHIN_MS = 60_000;
const WEEK_MS = 604_800_000;

/** How the clients that Kiota makes declare an amount. docs/guide/generated-clients.md says which of them are exact. */
const AMOUNTS: Readonly<Record<string, string>> = {
  CSharp: 'public decimal? TotalAmount',
  Java: 'private BigDecimal totalAmount;',
  Go: 'total_amount *float64',
  Python: 'total_amount: Optional[float]',
  PHP: 'private ?string $total_amount',
  TypeScript: 'totalAmount?: number | null;',
};

const folder = mkdtempSync(join(tmpdir(), 'fuel-generators-'));
cpSync(join(import.meta.dirname, 'csharp'), folder, { recursive: true });
const settings = {
  ...process.env,
  DOTNET_CLI_TELEMETRY_OPTOUT: '1',
  DOTNET_NOLOGO: '1',
  KIOTA_TELEMETRY_OPTOUT: '1',
  DOTNET_ROLL_FORWARD: 'Major', // to the runtime that is installed
  MSBUILDDISABLENODEREUSE: '1',
  DOTNET_CLI_USE_MSBUILD_SERVER: '0', // no process of the build stays
};

interface Ended {
  readonly ok: boolean;
  readonly output: string;
}

function dotnet(args: readonly string[], { timeoutMs = DONE_WITHIN_MS, env = {} } = {}): Ended {
  const { status, stdout, stderr, error } = spawnSync('dotnet', args, {
    cwd: folder,
    env: { ...settings, ...env },
    encoding: 'utf8',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 26,
  });
  return { ok: status === 0, output: `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`.trim() };
}

/** Runs a step that may not fail. Returns its output. */
function required(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { ok, output } = dotnet(args, { env });
  if (!ok) throw new Error(`dotnet ${args.join(' ')} failed:\n${output}`);
  return output;
}

/**
 * Gets the generators and their libraries. Returns why they can't be had here; `undefined` if they are there. A registry
 * that is unavailable is nobody's mistake, so it does not fail CI.
 */
function missing(): string | undefined {
  if (!dotnet(['--version']).ok) return 'the .NET SDK is not installed';
  for (const args of [['tool', 'restore'], ['restore']]) {
    const { ok, output } = dotnet(args, { timeoutMs: FETCHED_WITHIN_MS });
    if (!ok) return `\`dotnet ${args.join(' ')}\` got nothing from NuGet:\n${output}`;
  }
  return undefined;
}

function generate(): void {
  for (const [language, amount] of Object.entries(AMOUNTS)) {
    const to = join(folder, 'kiota', language);
    const names = ['-c', 'FuelClient', '-n', language === 'CSharp' ? 'FuelKiota' : 'fuel'];
    required(['kiota', 'generate', '-l', language, '-d', DOCUMENT, '-o', to, ...names]);
    const files = globSync('**/*.*', { cwd: to }).map((file) => readFileSync(join(to, file), 'utf8'));
    if (!files.some((text) => text.includes(amount))) {
      throw new Error(`Kiota for ${language} no longer declares ${amount}: correct the guide too`);
    }
    console.log(`Kiota, ${language}: ${files.length} files, with ${amount}`);
  }
  const names = ['/namespace:FuelNSwag', '/classname:FuelClient', '/ParameterDateTimeFormat:O'];
  required(['nswag', 'openapi2csclient', `/input:${DOCUMENT}`, '/output:NSwag.cs', ...names]);
  console.log('NSwag, CSharp');
}

/** Runs the compiled program, which uses both clients in C#, and compares what they make of the API's pages. */
async function compare(): Promise<void> {
  const mock = spawn(join(ROOT, 'bin/fuel'), ['mock', '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(mock, 'exit');
  try {
    const signal = AbortSignal.timeout(MOCK_READY_WITHIN_MS);
    const shown = once(createInterface(mock.stdout), 'line', { signal });
    const [line] = await Promise.race([shown, ended]);
    if (typeof line !== 'string') throw new Error(`fuel mock ended with ${line}`);
    const { base_url: baseUrl, ca_file: caFile, key, to } = JSON.parse(line);
    const from = new Date(Date.parse(to) - WEEK_MS).toISOString();
    const lines = await pulledLines({ baseUrl, ca: readFileSync(caFile, 'utf8'), key, from, to });
    const printed = required(['run', '--no-build'], {
      BASE_URL: baseUrl,
      API_KEY: key,
      FROM: from,
      TO: to,
      SSL_CERT_FILE: caFile,
    });
    deepStrictEqual(
      printed.split('\n'),
      ['Kiota', 'NSwag'].flatMap((client) => lines.map((each) => `${client}|${each}`)),
    );
    console.log(`both clients in C# have ${lines.length - 1} transactions as the API sends them`);
  } finally {
    mock.kill();
    await ended;
  }
}

try {
  const why = missing();
  if (why !== undefined) console.log(`test:generators is left out: ${why}`);
  else {
    generate();
    required(['build', '--no-restore']);
    console.log('both clients in C# compile');
    await compare();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
