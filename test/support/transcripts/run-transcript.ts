import { hash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { v4 } from 'uuid';
import { vi } from 'vitest';
import { world } from '../../../src/base/world.ts';
import { runInProcess } from '../service/in-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { PREPARATIONS } from './preparations.ts';
import { compared, type Printed, parseTranscript, wordsOf } from './transcript.ts';

/** The time of the first command. Each further one runs a second later. */
const BEGINS_MS = Date.parse('2026-09-05T10:00:00Z');

/**
 * Runs the commands of a transcript in a new folder, which has the transcript's own files and those of `fixtures`. Returns the
 * transcript as it is after that: the same text if every command printed what is expected.
 */
export async function runTranscript(path: string, fixtures: string): Promise<string> {
  const { steps, files, rest } = parseTranscript(readFileSync(path, 'utf8'));
  const folder = temporaryFolder();
  cpSync(fixtures, folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const before = process.cwd();
  replaceRandom();
  process.chdir(folder); // with it the data directory is `./data`, and files have the names that the transcript shows
  try {
    const lines: string[] = [];
    for (const [at, { above, command, expected }] of steps.entries()) {
      vi.spyOn(world, 'clockMs').mockReturnValue(BEGINS_MS + at * 1_000);
      const printed = (await run(wordsOf(command))).map((line) => line.replaceAll(folder, '/home/fuel'));
      lines.push(...above, `$ ${command}`, ...compared(printed, expected));
    }
    return [...lines, ...rest].join('\n');
  } finally {
    process.chdir(before);
    vi.restoreAllMocks();
  }
}

const SETTING = /^([A-Z_]+)=(.*)$/s;

/** Runs one command. Settings may stand before it, and a file for standard input after `<`. */
async function run(words: readonly string[]): Promise<Printed> {
  const nameAt = words.findIndex((word) => !SETTING.test(word));
  const [name = '', ...args] = words.slice(nameAt);
  const preparation = PREPARATIONS[name];
  if (preparation !== undefined) {
    await preparation(...args);
    return [];
  }
  if (name !== 'fuel')
    throw new Error(`${name} is neither fuel nor one of ${Object.keys(PREPARATIONS).join(', ')}`);
  const env = { ...process.env, FUEL_OPERATOR_LOGIN: 'ada' } as Record<string, string>;
  for (const word of words.slice(0, nameAt)) {
    const [, setting = '', value = ''] = SETTING.exec(word) ?? [];
    env[setting] = value;
  }
  const [input] = args.at(-2) === '<' ? args.splice(-2).slice(1) : [];
  const stdin = input === undefined ? undefined : readFileSync(input);
  const { code, stdout, stderr } = await runInProcess(args, { env, stdin });
  return [
    ...linesOf(stdout),
    ...linesOf(stderr).map((line) => `2> ${line}`),
    ...(code === 0 ? [] : [`[${code}]`]),
  ];
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

/** Makes keys, ids and secrets the same in each run. */
function replaceRandom(): void {
  let count = 0;
  const bytes = (length: number): Buffer =>
    hash('shake256', String(++count), { outputEncoding: 'buffer', outputLength: length });
  vi.spyOn(world, 'randomBytes').mockImplementation(bytes as never);
  vi.spyOn(world, 'randomInt').mockImplementation(((max: number) => bytes(4).readUInt32BE() % max) as never);
  vi.spyOn(world, 'randomUUID').mockImplementation(
    () => v4({ random: bytes(16) }) as ReturnType<typeof world.randomUUID>,
  );
}
