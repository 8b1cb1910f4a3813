import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { linesOfFile, readingList } from './support/reading/reading-list.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAX_FILE_LINES = 300;
const MAX_FOLDER_FILES = 12;
/** The layers from bottom to top. Each imports from the layers below it and from its own folder. */
const LAYERS = [
  ['src/domain'],
  ['src/tables'],
  ['src/base'],
  ['projections'],
  ['src/event-store'],
  ['src/seals'],
  ['src/accounts'],
  ['src/records'],
  ['src/pull'],
  ['src/push'],
  ['src/service'],
  ['src/engines'],
  ['src/operator'],
  ['src/customers'],
  ['src/operator/cli'],
  ['examples'],
  ['tools'],
];
/** Everything outside the core: the adapters, the operator's tools, and the customers' tools. */
const AROUND = /^src\/(?:engines|operator|customers)\//;
/** Files that may use real time and random numbers: the sources for everything else, the log's output, files. */
const REAL_WORLD = new Set([
  'src/base/world.ts',
  'src/push/targets/network.ts',
  'src/base/log.ts',
  'src/base/disk/disk.ts',
  'src/base/disk/write-once.ts',
]);
/** The folder of one engine. `tables/` has what is the same for all engines of tables. */
const ENGINE = /^src\/engines\/(?!tables\/)(\w+)\//;
/** Files that work on the embedded files directly. */
const FILES_OF_SQLITE = [
  'src/operator/backup/backup.ts',
  'src/operator/checks/data-directory.ts',
  'src/operator/checks/store.ts',
  'src/operator/cli/command/known-store.ts',
  'src/operator/cli/commands/store-commands.ts',
  'src/operator/erase/erased-bytes.ts',
];
/** The folders or files that may import a package: only its adapter. */
const DRIVERS: Readonly<Record<string, RegExp>> = {
  'node:sqlite': /^src\/engines\/sqlite\/|^src\/operator\/erase\/erased-bytes\.ts$/,
  mongodb: /^src\/engines\/mongodb\//,
  pg: /^src\/engines\/postgresql\//,
  '@eventstore/db-client': /^src\/engines\/eventstoredb\//,
  koa: /^src\/(?:pull|service|operator\/console|customers\/mock)\//,
  superstruct: /^src\/(?:domain|customers\/mock|operator\/apply)\/|^tools\/event-docs\//,
  'ipaddr.js': /^src\/push\/targets\/|^src\/base\/config\/ip-address\.ts$/,
  selfsigned: /^src\/pull\/|^tools\/demo\//,
  commander: /^src\/operator\/cli\//,
  pino: /^src\/base\/log\.ts$/,
  'prom-client': /^src\/service\/|^src\/pull\/api-metrics\.ts$|^src\/push\/delivery-metrics\.ts$/,
  '@opentelemetry/api': /^src\/base\/tracing\/export-spans\.ts$/,
  '@opentelemetry/sdk-trace': /^src\/base\/tracing\/export-spans\.ts$/,
  '@opentelemetry/resources': /^src\/base\/tracing\/export-spans\.ts$/,
  '@opentelemetry/exporter-trace-otlp-proto': /^src\/base\/tracing\/export-spans\.ts$/,
  htm: /^src\/operator\/console\/html\//,
  preact: /^src\/operator\/console\//,
  'preact-render-to-string': /^src\/operator\/console\/html\//,
};

interface Source {
  readonly path: string;
  readonly text: string;
  /** Packages by name, files by their path from the root. */
  readonly imports: readonly string[];
}

const sources = globSync('{src,projections,tools}/**/*.ts', { cwd: ROOT }).map(readSource);

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const specifiers = [
    ...text.matchAll(/^(?:(?:import|export) (?:[^'\n]* from )?|\} from )'([^'\n]+)';/gm),
    ...text.matchAll(/\bimport\('([^'\n]+)'\)/g),
  ].map(([, name = '']) => name);
  const imports = specifiers.map((name) =>
    name.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), name)) : name,
  );
  return { path, text, imports };
}

/** Returns `path imports name` for each forbidden import of these files. */
function violations(files: readonly Source[], permitted: (name: string, path: string) => boolean): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.filter((name) => !permitted(name, path)).map((name) => `${path} imports ${name}`),
  );
}

const inFolder = (folder: string) => sources.filter(({ path }) => path.startsWith(folder));

describe('the layout', () => {
  it('is found where the tests look for it', () => {
    expect(inFolder('src/domain/').length).toBeGreaterThan(5);
    expect(inFolder('projections/').length).toBeGreaterThan(1);
    expect(sources.flatMap(({ imports }) => imports)).toContain('src/domain/values/date-time.ts');
  });

  it('lets the domain import nothing but itself and the validator', () => {
    const permitted = (name: string) => name.startsWith('src/domain/') || name === 'superstruct';
    expect(violations(inFolder('src/domain/'), permitted)).toEqual([]);
  });

  it('lets projections import only the domain and each other', () => {
    const permitted = (name: string) => name.startsWith('src/domain/') || name.startsWith('projections/');
    expect(violations(inFolder('projections/'), permitted)).toEqual([]);
  });

  it('keeps clocks, randomness and the environment out of the domain and the projections', () => {
    const impure = /\bDate\.now\(|new Date\(\)|Math\.random\(|\bprocess\.|\bperformance\./;
    const found = [...inFolder('src/domain/'), ...inFolder('projections/')].filter(({ text }) =>
      impure.test(text),
    );
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it('takes time, timers, chance and threads from one place, and receivers from another, so that they can be simulated', () => {
    const core = sources.filter(
      ({ path }) => !/^tools\//.test(path) && !AROUND.test(path) && !REAL_WORLD.has(path),
    );
    const direct =
      /(?<![\w.])(?:Date\.now|new Date\(\)|performance\.|process\.(?:hrtime|nextTick|pid)|\bhostname\(\)|Math\.random|(?:set|clear)(?:Timeout|Interval|Immediate)\(|queueMicrotask\(\(\) => set|AbortSignal\.timeout)|\brandom(?:UUID|Bytes|Int|FillSync)\b(?<!world\.random\w+)|'node:timers|'node-cron'|\bnew Worker\(|\bnew Resolver\b|\btls\.connect\b/;
    const found = core.flatMap(({ path, text }) =>
      text
        .split('\n')
        .filter((line) => direct.test(line.replace(/\/\*\*.*|^ \*.*|\/\/.*/, '')))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });

  it('spreads no array into the arguments of a call, of which a stack takes only some ten thousand', () => {
    const spread = /(?:\.(?:push|unshift|splice)|Math\.(?:max|min))\((?:[^{}()[\]]*,)?\s*\.\.\.[^\n]*/g;
    const found = sources.flatMap(({ path, text }) =>
      [...text.matchAll(spread)].map(([call]) => `${path}: ${call}`),
    );
    expect(found).toEqual([]);
  });

  it('lets each driver be imported by its adapter alone', () => {
    const permitted = (name: string, path: string) => DRIVERS[packageOf(name)]?.test(path) ?? true;
    expect(violations(sources, permitted)).toEqual([]);
  });

  it('lets imports run one way, from the layers above to those below', () => {
    const layerOf = new Map(
      LAYERS.flatMap((folders, layer) => folders.map((name) => [name, layer] as const)),
    );
    const layer = (path: string): number => layerOf.get(topOf(path)) ?? -1;
    const permitted = (name: string, path: string) =>
      !isOurs(name) || topOf(name) === topOf(path) || layer(name) < layer(path);
    expect(sources.filter(({ path }) => layer(path) < 0).map(({ path }) => path)).toEqual([]);
    expect(violations(sources, permitted)).toEqual([]);
  });

  it('has no circle of folders, and none of files, types included', () => {
    expect(circlesOf(dirname)).toEqual([]);
    expect(circlesOf((path) => path)).toEqual([]);
  });

  it('lists at most fifteen files to read first of each path, and 55 files and 7,000 lines of both', () => {
    const paths = ["One transaction's path", "One delivery's path"].map(readingList);
    for (const { first, all } of paths) {
      expect(first.length).toBeLessThanOrEqual(15);
      expect(all.length).toBeGreaterThan(20);
    }
    const files = [...new Set(paths.flatMap(({ all }) => all))];
    expect(files.length).toBeLessThanOrEqual(55);
    expect(files.reduce((lines, path) => lines + linesOfFile(path), 0)).toBeLessThanOrEqual(7_000);
  });

  it('has no folder with too many files', () => {
    const counts = Map.groupBy(sources, ({ path }) => dirname(path));
    const large = [...counts].filter(([, files]) => files.length > MAX_FOLDER_FILES);
    expect(large.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([]);
  });

  it('lets the core import no engine, nothing of operators and nothing of customers', () => {
    const core = sources.filter(({ path }) => /^(?:src|projections)\//.test(path) && !AROUND.test(path));
    expect(violations(core, (name) => !AROUND.test(name))).toEqual([]);
  });

  it('lets only the registry pick an engine; an engine’s own parts stand beside it', () => {
    const engineOf = (path: string) => ENGINE.exec(path)?.[1];
    const users = sources.filter(
      ({ path, imports }) =>
        path !== 'src/engines/engines.ts' &&
        imports.some((name) => ENGINE.test(name) && engineOf(name) !== engineOf(path)),
    );
    expect(users.map(({ path }) => path).sort()).toEqual(FILES_OF_SQLITE);
  });

  it('names an engine and its settings in its folder alone, and lists the engines in the registry alone', () => {
    const naming =
      /['"`$ ]EVENTSTORE_|MONGODB_|POSTGRES_|['"`](?:eventstoredb|mongodb|postgresql|event-store)['"`]/;
    const found = inFolder('src/').filter(
      ({ path, text }) => !ENGINE.test(path) && naming.test(withoutComments(text)),
    );
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it('has HTTP statuses of answers in one file, and those of the operations listener in another', () => {
    const status =
      /\b(?:status|statusCode)\b\s*[:=]\s*[1-5]\d\d\b|writeHead\(\s*[1-5]\d\d|\.status\([1-5]\d\d/;
    const found = sources.filter(({ text }) => status.test(text)).map(({ path }) => path);
    expect(found).toEqual(['src/pull/answers.ts']);
    const answering = sources.filter(({ path }) =>
      /^src\/(?:pull|pull\/server|service\/ops)\/[^/]+$/.test(path),
    );
    const literal = answering.filter(({ text }) => /(?<!_MS = )\b[45]\d\d\b/.test(withoutComments(text)));
    expect(literal.map(({ path }) => path).sort()).toEqual([
      'src/pull/answers.ts',
      'src/service/ops/ops-server.ts',
    ]);
  });

  it('exports nothing that only tests use', () => {
    const exported = /^export (?:async )?(?:function\*?|class|const|let) (\w+)/gm;
    const program = sources.filter(({ path }) => /^(?:src|projections)\//.test(path));
    const texts = sources.map(({ text }) => text);
    const uses = (name: string): number => {
      const word = new RegExp(`\\b${name}\\b`, 'g');
      return texts.reduce((sum, text) => sum + (text.match(word)?.length ?? 0), 0);
    };
    const unused = program.flatMap(({ path, text }) =>
      [...text.matchAll(exported)]
        .filter(([, name = '']) => uses(name) < 2)
        .map(([, name]) => `${path}: ${name}`),
    );
    expect(unused).toEqual([]);
  });

  it('has no file that is too long', () => {
    const long = sources.filter(({ text }) => text.split('\n').length - 1 > MAX_FILE_LINES);
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  it('uses only packages that the project depends on, at run time', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const known = new Set([...Object.keys(dependencies), ...builtinModules.map((name) => `node:${name}`)]);
    const permitted = (name: string, path: string) =>
      isOurs(name) ||
      known.has(packageOf(name)) ||
      name === 'node:sqlite' ||
      (path.startsWith('tools/doc-tables/') && Object.hasOwn(devDependencies, name)) ||
      (name.startsWith('examples/') && path.startsWith('tools/')); // the demo shows the examples at work
    expect(violations(sources, permitted)).toEqual([]);
  });

  it('names files in kebab-case', () => {
    const odd = sources.filter(({ path }) => !/^[a-z0-9-]+(\/[a-z0-9-]+)*\.ts$/.test(path));
    expect(odd.map(({ path }) => path)).toEqual([]);
  });
});

/** Returns the files, or groups of files, that are part of an import cycle or lie between cycles. */
function circlesOf(place: (path: string) => string): string[] {
  const imported = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    const from = place(path);
    const others = imports.filter(isOurs).map(place);
    imported.set(from, new Set([...(imported.get(from) ?? []), ...others.filter((name) => name !== from)]));
  }
  // This repeatedly removes everything that imports nothing that is left.
  for (let before = -1; before !== imported.size; ) {
    before = imported.size;
    for (const [name, others] of imported)
      if (![...others].some((other) => imported.has(other))) imported.delete(name);
  }
  return [...imported.keys()];
}

const isOurs = (name: string): boolean => /^(?:src|projections|tools|examples)\//.test(name);

/** Returns the folder below `src`, or the top folder, or a deeper one if that is a layer. */
function topOf(path: string): string {
  const [top = '', second = '', third = ''] = path.split('/');
  if (top !== 'src') return top;
  return LAYERS.flat().includes(`src/${second}/${third}`) ? `src/${second}/${third}` : `src/${second}`;
}

/** Returns `@scope/name` for `@scope/name/part`. */
function packageOf(name: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name;
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*/g, '');
}
