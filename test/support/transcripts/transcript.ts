/** One command of a transcript with what it is expected to print. */
export interface Step {
  /** Comments and blank lines above the command. */
  readonly above: readonly string[];
  readonly command: string;
  readonly expected: Printed;
}

/** Lines of standard output, then lines of standard error after `2> `, then the exit code in brackets, 0 if there is none. */
export type Printed = readonly string[];

export interface Transcript {
  readonly steps: readonly Step[];
  /** Files that the commands read, by name. */
  readonly files: Readonly<Record<string, string>>;
  /** Everything after the last step, as it stands. */
  readonly rest: readonly string[];
}

const FILE = /^-- (\S+) --$/;
/** Stands for any text within a line, or, as a line of its own, for any number of lines. */
const ANY = '[..]';
const ANY_LINES = '...';

/**
 * Reads a transcript: lines that begin with `$ ` are commands, with `# ` comments, and what follows a command is what it
 * prints. Files stand at the end, each below a line with its name: `-- accounts.jsonl --`.
 */
export function parseTranscript(text: string): Transcript {
  const lines = text.split('\n');
  const filesAt = lines.findIndex((line) => FILE.test(line));
  const end = filesAt === -1 ? lines.length : filesAt;
  const steps: Step[] = [];
  let above: string[] = [];
  let at = 0;
  while (at < end) {
    const line = lines[at] ?? '';
    at += 1;
    if (!line.startsWith('$ ')) {
      above.push(line);
      continue;
    }
    const expected: string[] = [];
    for (; at < end && !/^[$#] /.test(lines[at] ?? ''); at += 1) expected.push(lines[at] ?? '');
    const blank = expected.length - expected.findLastIndex((each) => each !== '') - 1;
    steps.push({ above, command: line.slice(2), expected: expected.slice(0, expected.length - blank) });
    above = Array<string>(blank).fill('');
  }
  return { steps, files: filesOf(lines.slice(end)), rest: [...above, ...lines.slice(end)] };
}

function filesOf(lines: readonly string[]): Record<string, string> {
  const files: Record<string, string> = {};
  let name = '';
  for (const line of lines) {
    const [, named] = FILE.exec(line) ?? [];
    if (named !== undefined) {
      name = named;
      files[name] = '';
    } else if (line !== '') files[name] += `${line}\n`;
  }
  return files;
}

/** The words of a command. Quotes keep a word together. */
export function wordsOf(command: string): string[] {
  return [...command.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single),
  );
}

/** Returns what was printed, with the expected lines wherever they fit. `[..]` fits any text, and `...` any lines. */
export function compared(printed: Printed, expected: Printed): Printed {
  if (fits(printed, expected)) return expected;
  return printed.map((line) => expected.find((pattern) => lineFits(line, pattern)) ?? line);
}

function fits(lines: Printed, [pattern, ...others]: Printed): boolean {
  if (pattern === undefined) return lines.length === 0;
  if (pattern === ANY_LINES)
    return [...lines.keys(), lines.length].some((from) => fits(lines.slice(from), others));
  const [line, ...rest] = lines;
  return line !== undefined && lineFits(line, pattern) && fits(rest, others);
}

function lineFits(line: string, pattern: string): boolean {
  return new RegExp(`^${pattern.split(ANY).map(RegExp.escape).join('.*')}$`, 's').test(line);
}
