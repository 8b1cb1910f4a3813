import type { Random } from '../../src/customers/sample/random.ts';
import { type CrashPoint, pointText } from './points.ts';

/** A side of a site, and the highest number with which it may be drawn. */
type Drawn = readonly [side: CrashPoint['side'], name: string, times: number];

/** The points to draw from, and when. */
export interface PointLists {
  /** The points of a first start, on an empty store. */
  readonly start: readonly Drawn[];
  readonly serve: readonly Drawn[];
  readonly import: readonly Drawn[];
  readonly void: readonly Drawn[];
  readonly redact: readonly Drawn[];
  readonly erase: readonly Drawn[];
  readonly rebuild: readonly Drawn[];
}

const bothSides = (name: string, times: number): Drawn[] => [
  ['before', name, times],
  ['after', name, times],
];

const START: readonly Drawn[] = [
  ...bothSides('append', 2),
  ...bothSides('reset-view', 1),
  ...bothSides('acquire-lease', 2),
  ['before', 'apply', 1],
];
const SERVE: readonly Drawn[] = [
  ...bothSides('enqueue', 3),
  ...bothSides('ack', 3),
  ...bothSides('send', 8),
  ...bothSides('record-outcomes', 3),
  ...bothSides('lease', 2),
  ...bothSides('change-deliveries', 4),
  ...bothSides('apply', 5),
  ...bothSides('acquire-lease', 3),
  ...bothSides('make-accounts', 3),
  ...bothSides('write-accounts', 3),
  ...bothSides('apply-ends', 3),
  ...bothSides('move-follower', 5),
];
/** The points of an import: its start, and a plan before each append of transactions. */
const IMPORT = bothSides('append', 7);
const VOID = bothSides('append', 2);
const REDACT: readonly Drawn[] = [
  ...bothSides('append', 1),
  ...bothSides('rewrite-events', 4),
  ...bothSides('replace-row', 4),
  ...bothSides('change-deliveries', 4),
];
const ERASE: readonly Drawn[] = [
  ...bothSides('append', 1),
  ...bothSides('erase-events', 1),
  ...bothSides('change-deliveries', 1),
  ...bothSides('replace-row', 1),
];
const REBUILD: readonly Drawn[] = [
  ...bothSides('start-build', 1),
  ...bothSides('apply', 5),
  ...bothSides('switch-view', 1),
  ['before', 'append', 1],
];

export const EMBEDDED_POINTS: PointLists = {
  start: [...START, ...bothSides('commit', 8)],
  serve: [...SERVE, ...bothSides('commit', 60)],
  import: [...IMPORT, ['before', 'commit', 7]],
  void: [...VOID, ['before', 'commit', 2]],
  redact: [...REDACT, ['before', 'commit', 8]],
  erase: [...ERASE, ['before', 'commit', 4]],
  rebuild: [...REBUILD, ['before', 'commit', 3]],
};

export const ENGINE_POINTS: PointLists = {
  start: START,
  serve: [
    ...SERVE,
    ...bothSides('move-checkpoint', 5),
    ...bothSides('make-indexes', 1),
    ...bothSides('remove-generation', 1),
  ],
  import: IMPORT,
  void: VOID,
  redact: REDACT,
  erase: ERASE,
  rebuild: [
    ...REBUILD,
    ['after', 'new-generation', 1],
    ['after', 'serve-build', 1],
    ...bothSides('make-indexes', 1),
    ...bothSides('move-checkpoint', 2),
  ],
};

/** The points of `fuel store copy` to the engines, in order, before events are appended. */
export const COPY_POINTS_BEFORE_EVENTS: readonly Drawn[] = [
  'name-target',
  'adopt-log',
  'begin-copy',
  'erase-events',
].flatMap((name) => bothSides(name, 1));

/** The points of `fuel store copy` from then on. */
export const COPY_POINTS: readonly Drawn[] = [
  'append',
  'append-copies',
  'relocate-deliveries',
  'record-copy',
  'end-copy',
].flatMap((name) => bothSides(name, 1));

/** Returns the text of a point with a drawn number. */
export function draw([side, name, times]: Drawn, random: Random): string {
  return pointText({ side, name, time: random.between([1, times]) });
}

/** Yields points of a list endlessly. Each is drawn once before any is repeated. */
export function* drawAll(list: readonly Drawn[], random: Random): Generator<string, never> {
  for (;;) {
    const left = [...list];
    while (left.length > 0) {
      for (const drawn of left.splice(random.between([0, left.length - 1]), 1)) yield draw(drawn, random);
    }
  }
}
