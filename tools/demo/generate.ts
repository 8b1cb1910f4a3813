import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { FuelError } from '../../src/base/errors.ts';
import { type GeneratorOptions, generateTransactions } from '../../src/customers/sample/generator.ts';
import { parseDateTime } from '../../src/domain/values/date-time.ts';

const USAGE = `Writes sample transactions, one {"type","data"} object a line, as "fuel transaction import" reads them.

  node tools/demo/generate.ts --count 20000 --days 90 --seed 1 --end 2026-09-30T00:00:00Z > sample.jsonl

  --count N       transactions to record; voids and cancellations come on top (default 20000)
  --days N        days that they are spread over (default 90)
  --seed N        the same seed gives the same transactions (default 1)
  --end T         when the days end, an ISO 8601 date-time (default 2026-09-30T00:00:00Z)
  --accounts A,B  ids of the accounts (default 7,8,9)
  --help          this text
`;
const LINES_A_CHUNK = 200;

function* chunksOf(options: GeneratorOptions): Generator<string, void, undefined> {
  let lines = 0;
  let chunk = '';
  for (const event of generateTransactions(options)) {
    chunk += `${JSON.stringify(event)}\n`;
    if (++lines % LINES_A_CHUNK === 0) {
      yield chunk;
      chunk = '';
    }
  }
  if (chunk !== '') yield chunk;
}

function readOptions(): GeneratorOptions | 'help' {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '20000' },
      days: { type: 'string', default: '90' },
      seed: { type: 'string', default: '1' },
      end: { type: 'string', default: '2026-09-30T00:00:00Z' },
      accounts: { type: 'string', default: '7,8,9' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const endMs = parseDateTime(values.end);
  if (endMs === undefined) throw new FuelError('USAGE', '--end must be an ISO 8601 date-time');
  return {
    count: wholeNumber('--count', values.count, 0),
    days: wholeNumber('--days', values.days, 1),
    seed: wholeNumber('--seed', values.seed, 0),
    endMs,
    accountIds: values.accounts.split(',').map((id) => wholeNumber('--accounts', id, 0)),
  };
}

function wholeNumber(option: string, text: string, lowest: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= lowest && Number.isSafeInteger(number)) return number;
  throw new FuelError('USAGE', `${option} must be a whole number from ${lowest}, not "${text}"`);
}

function isUsage(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return (
    `${(error as NodeJS.ErrnoException).code}`.startsWith('ERR_PARSE_ARGS') ||
    (error instanceof FuelError && error.code === 'USAGE')
  );
}

try {
  const options = readOptions();
  if (options === 'help') process.stdout.write(USAGE);
  else await pipeline(Readable.from(chunksOf(options)), process.stdout, { end: false });
} catch (error) {
  if (isUsage(error)) {
    process.stderr.write(`${error.message}\nSee --help.\n`);
    process.exitCode = 2;
  } else if ((error as NodeJS.ErrnoException).code !== 'EPIPE') {
    throw error; // only a reader that stops early (`| head`) is not a failure
  }
}
