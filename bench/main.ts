import './support/engine-urls.ts';
import { print } from './support/pairs.ts';

interface Bench {
  /** Prints its figures. Returns true if every floor and limit was met, or that it could not run here. */
  run(): Promise<boolean | 'not run'>;
}

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  import: () => import('./import.ts'),
  apply: () => import('./apply.ts'),
  rebuild: () => import('./rebuild.ts'),
  verify: () => import('./verify.ts'),
  page: () => import('./page.ts'),
  corporates: () => import('./corporates.ts'),
  depth: () => import('./depth.ts'),
  memory: () => import('./memory.ts'),
  start: () => import('./start.ts'),
  deliveries: () => import('./deliveries.ts'),
  'one-core': () => import('./one-core.ts'),
  'delivery-latency': () => import('./delivery-latency.ts'),
  traces: () => import('./traces.ts'),
  hanging: () => import('./hanging.ts'),
  hostile: () => import('./hostile.ts'),
  'small-receivers': () => import('./small-receivers.ts'),
  neighbours: () => import('./neighbours.ts'),
  'engines-import': () => import('./engines/import.ts'),
  'engines-rebuild': () => import('./engines/rebuild.ts'),
  'engines-page': () => import('./engines/page.ts'),
  'engines-tables': () => import('./engines/tables.ts'),
  'engines-deliveries': () => import('./engines/deliveries.ts'),
  'engines-scale': () => import('./engines/scale.ts'),
  'engines-latency': () => import('./engines/latency.ts'),
  distance: () => import('./engines/distance.ts'),
};

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(benches);
const unknown = names.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  process.stderr.write(`no benchmark ${unknown.join(', ')}: there are ${Object.keys(benches).join(', ')}\n`);
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const missed: string[] = [];
const notRun: string[] = [];
for (const name of names) {
  print(`== ${name}`);
  const bench = await benches[name]?.();
  const verdict = await bench?.run();
  if (verdict === 'not run') notRun.push(name);
  else if (verdict !== true) missed.push(name);
}
if (notRun.length > 0) print(`not run: ${notRun.join(', ')}`);
if (missed.length > 0) {
  print(`fell short: ${missed.join(', ')}`);
  process.exitCode = 1;
}
