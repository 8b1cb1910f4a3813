import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Instruction {
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

interface Copy {
  /** The stage that it copies from; `undefined` for the build context. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

/** Returns the stages of the Dockerfile in this folder. */
export function readDockerfile(root: string): Stage[] {
  const lines = readFileSync(join(root, 'Dockerfile'), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', text = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === '') throw new Error(`not an instruction on one line: ${line}`);
    const from = name === 'FROM' ? /^(\S+)(?: AS (\S+))?$/.exec(text) : null;
    if (from !== null) stages.push({ image: from[1] ?? '', name: from[2], instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** Returns the text of a stage's last instruction with this name. */
export function lastOf(stage: Stage, name: string): string {
  const found = stage.instructions.findLast((instruction) => instruction.name === name);
  if (found === undefined) throw new Error(`the Dockerfile has no ${name}`);
  return found.text;
}

export function environmentOf(stage: Stage): Record<string, string> {
  return Object.fromEntries(
    stage.instructions.filter(({ name }) => name === 'ENV').map(({ text }) => text.split('=', 2)),
  );
}

export function readCopy(text: string): Copy {
  const words = text.split(/\s+/);
  const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
  const target = words.pop();
  if (target === undefined || words.length === 0 || words.some((word) => word.startsWith('--')))
    throw new Error(`not a COPY that is understood here: ${text}`);
  return { from, sources: words, target };
}

/** Makes a check for `.dockerignore`: the last line that matches a path or one of its parents decides. */
export function readIgnore(root: string): (path: string) => boolean {
  const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: line.replace(/^!/, '') }));
  return (path) => {
    const parts = path.split('/');
    const itAndParents = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
    const rule = rules.findLast(({ pattern }) => itAndParents.some((part) => matches(part, pattern)));
    return rule !== undefined && !rule.keeps;
  };
}

/** Matches like Docker, for which a leading dot is not special. Of its patterns only `*` is supported. */
function matches(path: string, pattern: string): boolean {
  if (/[?[\]\\]|\*\*/.test(pattern)) throw new Error(`.dockerignore: not understood here: ${pattern}`);
  const [first = '', ...others] = pattern.split('*').map(RegExp.escape);
  return new RegExp(`^${[first, ...others].join('[^/]*')}$`).test(path);
}

/** Returns every file that a COPY from the build context copies, by its path in the context. */
export function copiedFiles(root: string, { sources }: Copy): string[] {
  const isIgnored = readIgnore(root);
  return sources.flatMap((source) => {
    const path = source.replace(/^\.\//, '');
    const files = globSync([path, `${path}/**`], { cwd: root, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replace(/^\//, ''));
    const taken = [...new Set(files)].filter((file) => !isIgnored(file));
    if (taken.length === 0) throw new Error(`COPY ${source}: there is nothing to copy`);
    return taken;
  });
}
