import type { AnyRow } from '../../../tables/plan.ts';
import { comparing, type Selected } from '../../../tables/selected.ts';

// MongoDB merges few runs at a time. Of many runs it is first asked where each begins.

/** Returns the number of runs: the combinations of the equal values. */
export function runCount({ equals }: Pick<Selected, 'equals'>): number {
  return equals.reduce((product, [, values]) => product * values.length, 1);
}

/**
 * Makes a selection begin at the first column of the place that it continues after, as a single range of the index. It
 * may have rows that are not after the place, all of which share that column with the place.
 */
export function upToPlace(found: Selected): Selected {
  const { after, descending, order } = found;
  const [place] = after ?? [];
  if (place === undefined) return found;
  const [first = ''] = order;
  const side = descending ? 'to' : 'from';
  const limit = found[side];
  const isNearer =
    limit !== undefined && comparing([first], descending)({ [first]: limit }, { [first]: place }) > 0;
  return { ...found, after: undefined, [side]: isNearer ? limit : place };
}

/** Splits a selection so that only its longest list of values is left. Returns that list's column and the parts. */
export function withOneList(found: Selected): readonly [column: string, parts: readonly Selected[]] {
  const longest = found.equals.reduce((one, other) => (other[1].length > one[1].length ? other : one));
  let parts: Selected['equals'][] = [[]];
  for (const [column, values] of found.equals) {
    const each = column === longest[0] ? [values] : values.map((value) => [value]);
    parts = parts.flatMap((part) => each.map((some) => [...part, [column, some] as const]));
  }
  return [longest[0], parts.map((equals) => ({ ...found, equals, isOneRun: true }))];
}

/**
 * Returns the part of a selection with its first rows, as many as `limit`. `begun` says where each run of `upToPlace`
 * begins. Where that many runs have begun after the place, nothing beyond the last of these beginnings is among
 * the rows.
 */
export function runsReaching(found: Selected, begun: readonly AnyRow[], limit: number): Selected {
  const { after, descending, order } = found;
  const [first = ''] = order;
  const inOrder = comparing([first], descending);
  const last = begun
    .filter((row) => row[first] !== after?.[0])
    .toSorted(inOrder)
    .at(limit - 1);
  const reaching = last === undefined ? begun : begun.filter((row) => inOrder(row, last) <= 0);
  const equals = found.equals.map(([column, values]) => {
    const some = new Set(reaching.map((row) => row[column]));
    return [column, values.filter((value) => some.has(value))] as const;
  });
  const end = last && { [descending ? 'from' : 'to']: last[first] };
  return { ...found, ...end, equals, isNone: reaching.length === 0 };
}
