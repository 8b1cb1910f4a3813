import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, test } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const BIN = fileURLToPath(new URL('../../../bin/', import.meta.url));
const { ownFolder } = createRequire(import.meta.url)(join(BIN, 'own-folder.cjs')) as {
  ownFolder: (path: string, uid: number) => string | undefined;
};
const uid = process.geteuid?.() ?? 0;
const STRANGER = 64_001;

const IN_THREAD =
  'new (require("node:worker_threads").Worker)(' +
  "\"console.log(require('node:module').getCompileCacheDir() ?? 'none')\", { eval: true })";

let folder: string;

beforeEach(() => {
  folder = realpathSync(temporaryFolder());
});

function make(name: string, mode: number): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
  return path;
}

describe('a folder of the user alone', () => {
  it('is made with mode 0700 where it is missing, with those above it', () => {
    const path = join(folder, 'new', 'cache');
    expect(ownFolder(path, uid)).toBe(path);
    expect(ownFolder(path, uid)).toBe(path);
    expect(readdirSync(folder)).toEqual(['new']);
  });

  it.each([0o701, 0o710, 0o720, 0o750, 0o755, 0o777])('has mode 0700 and not %o', (mode) => {
    expect(ownFolder(make('cache', mode), uid)).toBeUndefined();
  });

  it('belongs to the user and to nobody else', () => {
    expect(ownFolder(make('cache', 0o700), STRANGER)).toBeUndefined();
  });

  it('lies in no folder that others may write to, however deep', () => {
    make('shared', 0o777);
    expect(ownFolder(make('shared/mine/cache', 0o700), uid)).toBeUndefined();
    expect(ownFolder(join(folder, 'shared', 'next'), uid)).toBeUndefined();
    expect(existsSync(join(folder, 'shared', 'next'))).toBe(false);
    make('group', 0o770);
    expect(ownFolder(make('group/cache', 0o700), uid)).toBeUndefined();
  });

  it('may be in a shared folder where users can’t rename files of others', () => {
    make('sticky', 0o1777);
    const path = make('sticky/cache', 0o700);
    expect(ownFolder(path, uid)).toBe(path);
  });

  it('is no symbolic link, and under none of a stranger', () => {
    const real = make('real', 0o700);
    symlinkSync(real, join(folder, 'link'));
    expect(ownFolder(join(folder, 'link'), uid)).toBeUndefined();
    expect(ownFolder(join(folder, 'link', 'cache'), uid)).toBe(join(real, 'cache'));
    make('shared', 0o777);
    symlinkSync(make('shared/target', 0o700), join(folder, 'to-shared'));
    expect(ownFolder(join(folder, 'to-shared', 'cache'), uid)).toBeUndefined();
  });

  it('is not the root, a file, or below a file', () => {
    expect(ownFolder('/', uid)).toBeUndefined();
    expect(ownFolder(fileURLToPath(import.meta.url), uid)).toBeUndefined();
    expect(ownFolder(join(fileURLToPath(import.meta.url), 'cache'), uid)).toBeUndefined();
  });
});

describe('the command line', () => {
  const run = (env: Readonly<Record<string, string>>): string =>
    execFileSync(join(BIN, 'fuel'), ['--version'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', TMPDIR: tmpdir(), ...env },
    });
  const isUsed = (path: string): boolean => existsSync(path) && readdirSync(path).length > 0;

  it('keeps compiled sources in the home of its user', () => {
    run({ HOME: folder });
    expect(isUsed(join(folder, '.cache', 'fuel-integration'))).toBe(true);
  });

  it('keeps them in XDG_CACHE_HOME where that is set', () => {
    run({ HOME: folder, XDG_CACHE_HOME: join(folder, 'caches') });
    expect(isUsed(join(folder, 'caches', 'fuel-integration'))).toBe(true);
    expect(readdirSync(folder)).toEqual(['caches']);
  });

  it('keeps none in the shared temporary directory, nor where there is no home', () => {
    const shared = make('shared', 0o1777);
    for (const HOME of ['', '/nonexistent/home']) run({ TMPDIR: shared, HOME });
    expect(readdirSync(shared)).toEqual([]);
  });

  it('takes the folder that NODE_COMPILE_CACHE names where it is of the user alone', () => {
    const asked = make('asked', 0o700);
    run({ HOME: folder, NODE_COMPILE_CACHE: asked });
    expect(isUsed(asked)).toBe(true);
    expect(readdirSync(folder)).toEqual(['asked']);
  });

  it('runs no code from a folder that others may write to, named by NODE_COMPILE_CACHE or not', () => {
    const asked = make('asked', 0o777);
    run({ HOME: folder, NODE_COMPILE_CACHE: asked });
    expect(isUsed(asked)).toBe(false);
    const home = make('home', 0o777);
    run({ HOME: home, XDG_CACHE_HOME: home, NODE_COMPILE_CACHE: 'relative' });
    expect(readdirSync(home)).toEqual([]);
  });
});

test('threads use the folder that was judged, and no other', () => {
  const asked = (env: Readonly<Record<string, string>>) =>
    execFileSync(process.execPath, ['-r', join(BIN, 'compile-cache.cjs'), '-e', IN_THREAD], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', ...env },
    }).trim();
  expect(asked({ HOME: folder })).toContain(join(folder, '.cache', 'fuel-integration'));
  expect(asked({ HOME: make('home', 0o777), FUEL_COMPILE_CACHE: make('asked', 0o777) })).toBe('none');
});

test('no script lets Node use a folder that was not checked', () => {
  const { scripts } = JSON.parse(readFileSync(join(BIN, '..', 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const programs = Object.entries(scripts).filter(
    ([name, line]) => /\bnode\b/.test(line) && !name.startsWith('test:'),
  );
  expect(programs.map(([name]) => name)).toContain('demo');
  for (const [, line] of programs)
    expect(line.replaceAll('NODE_COMPILE_CACHE= node ', '')).not.toMatch(/\bnode /);
  expect(scripts.start).toBe('bin/fuel serve');
});
