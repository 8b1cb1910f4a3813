import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandUnknownOpts as Command } from '@commander-js/extra-typings';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/operator/cli/program.ts';
import { blocksOf, documents, inlineCodeOf, readDocument } from '../support/documents.ts';

const ROOT = join(import.meta.dirname, '../..');
const SHELL = ['sh', 'console'];
const OPTIONS_OF_ALL = ['--help', '--version'];

let made: Command | undefined;
/** Returns the program to look commands up in. It is made once, since the documents name thousands of words. */
function program(): Command {
  made ??= createProgram();
  return made;
}

/** The shell blocks of the documents. Of console blocks only the lines after the prompt count. */
const scripts = documents().flatMap((page) =>
  blocksOf(readDocument(page))
    .filter(({ language }) => SHELL.includes(language))
    .map(({ language, text }) => ({ page, text: language === 'console' ? typedIn(text) : text })),
);

describe('the commands of the documents', () => {
  it('in blocks are accepted by the command line', async () => {
    const found = scripts.flatMap(({ page, text }) => commandsIn(text).map((words) => ({ page, words })));
    const refused: string[] = [];
    for (const { page, words } of found) {
      const fault = await faultOf(words);
      if (fault !== undefined) refused.push(`${page}: fuel ${words.join(' ')}: ${fault}`);
    }
    expect(refused).toEqual([]);
    expect(found.length).toBeGreaterThan(25);
    expect(new Set(found.map(({ page }) => page))).toEqual(
      new Set([
        'README.md',
        'docs/guide/first-pull.md',
        ...['backup', 'customers', 'engines', 'running'].map((page) => `docs/operations/${page}.md`),
      ]),
    );
  });

  it('in sentences and tables name nouns, verbs and options that exist', () => {
    const found = documents().flatMap((page) =>
      inlineCodeOf(readDocument(page)).flatMap((code) =>
        namedIn(code).map((words) => ({ page, words, unknown: unknownIn(words) })),
      ),
    );
    expect(found.filter(({ unknown }) => unknown !== undefined)).toEqual([]);
    expect(found.length).toBeGreaterThan(100);
  });

  it('that have a row in a table have the options that the row names', () => {
    const rows = documents().flatMap((page) =>
      [...readDocument(page).matchAll(/^\| `fuel ([^`]+)` \|(.*)$/gm)].map(([, line = '', rest = '']) => ({
        words: wordsOf(line),
        options: inlineCodeOf(rest).filter((code) => code.startsWith('--')),
      })),
    );
    const unknown = rows.flatMap(({ words, options }) =>
      options.map((option) => unknownIn([...words, ...wordsOf(option)])),
    );
    expect(unknown.filter((word) => word !== undefined)).toEqual([]);
    expect(unknown.length).toBeGreaterThan(5);
  });

  it('name no option that no command has', () => {
    const own = everyCommand(program()).flatMap(({ options }) => options.map(({ long }) => long));
    const known = [...OPTIONS_OF_ALL, ...own];
    const named = documents().flatMap((page) =>
      inlineCodeOf(readDocument(page)).flatMap((code) => /^--[a-z-]+(?!.*vitest)/.exec(code)?.[0] ?? []),
    );
    expect(named.filter((option) => !known.includes(option))).toEqual([]);
    expect(named).toContain('--actor');
  });

  it('can be read by a shell', () => {
    for (const { page, text } of scripts) {
      const read = () => execFileSync('bash', ['-n'], { input: text, stdio: ['pipe', 'pipe', 'pipe'] });
      expect(read, `${page}:\n${text}`).not.toThrow();
    }
  });

  it('run npm scripts and files that exist', () => {
    const code = documents().flatMap((page) => inlineCodeOf(readDocument(page)));
    const all = [...scripts.map(({ text }) => text), ...code].join('\n');
    const { scripts: known } = JSON.parse(readDocument('package.json')) as { scripts: object };
    const named = [...all.matchAll(/\bnpm (?:run )?(?!ci\b|install\b|run\b)([a-z:]+)/g)].map(
      ([, name = '']) => name,
    );
    expect(named.filter((name) => !(name in known))).toEqual([]);
    expect(named).toContain('demo');
    const files = [
      ...all.matchAll(
        /(?:^|[\s/])((?:src|projections|test|docs|tools|bench|examples|deploy|bin)\/[\w./-]+)/gm,
      ),
    ].map(([, file = '']) => file);
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    expect(files).toContain('examples/receiver/receiver.ts');
  });
});

/** Returns what is typed at the prompts of a console. */
function typedIn(text: string): string {
  return [...text.matchAll(/^\$ (.*\n)/gm)].map(([, line = '']) => line).join('');
}

/** Returns the command lines of `fuel` in a shell's text, without its name. */
function commandsIn(text: string): string[][] {
  const lines = text.replaceAll(/\\\n/g, ' ').replaceAll(/(^|\s)#.*$/gm, '');
  return [...lines.matchAll(/(?:^|[\s(])(?:bin\/)?fuel ([^|<>;&\n)]*)/g)].map(([, line = '']) =>
    wordsOf(line),
  );
}

/** Returns the commands in a piece of inline code. `key issue` is short for `fuel key issue`. */
function namedIn(code: string): string[][] {
  const found = commandsIn(code);
  const [first, second] = code.split(' ');
  const noun = program().commands.find((command) => command.name() === first);
  const isShort = found.length === 0 && noun?.commands.some((verb) => verb.name() === second) === true;
  return isShort ? [wordsOf(code)] : found;
}

/** Splits words as a shell does, without expanding variables. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  );
}

/**
 * Returns the fault that the command line finds in these words before it does anything; `undefined` if it finds none.
 */
async function faultOf(words: readonly string[]): Promise<string | undefined> {
  const program = createProgram();
  let done = false;
  const did = (): void => {
    done = true;
  };
  for (const command of everyCommand(program)) {
    command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    if (takesArguments(command)) command.action(did);
  }
  try {
    const expanded = words.map((word) => (word === '$PREFIX' ? 'a1b2c3d4e5' : word));
    await program.parseAsync(expanded, { from: 'user' });
  } catch (error) {
    if (!OPTIONS_OF_ALL.some((option) => words.includes(option))) return (error as Error).message;
    return undefined;
  }
  return done ? undefined : 'nothing would be done';
}

/** Returns the first word that the command line does not know. Names in capitals and `…` stand for arguments. */
function unknownIn(words: readonly string[]): string | undefined {
  let command = program();
  let taken = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word.startsWith('-') && word !== '-') {
      const option = command.options.find(({ long, short }) => long === word || short === word);
      if (option === undefined && !OPTIONS_OF_ALL.includes(word)) return word;
      if (option?.required) at += 1;
      continue;
    }
    const next = command.commands.find((candidate) => candidate.name() === word);
    if (next !== undefined && taken === 0) command = next;
    else if (!takesOneMore(command, taken++)) return word;
  }
  return undefined;
}

function takesOneMore({ registeredArguments }: Command, taken: number): boolean {
  return taken < registeredArguments.length || registeredArguments.at(-1)?.variadic === true;
}

/** True if a command takes arguments. For a noun without a verb the command line shows its help. */
function takesArguments(command: Command): boolean {
  return command.commands.length === 0 || command.name() === 'parked';
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
