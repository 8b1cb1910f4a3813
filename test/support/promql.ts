import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/** The part of PromQL that the alert rules use, so that their cases are tried where there is no promtool. */
type Labels = Readonly<Record<string, string>>;
interface Sample {
  readonly labels: Labels;
  readonly value: number;
}
type Point = readonly [seconds: number, value: number];
export interface Series {
  readonly labels: Labels;
  readonly points: readonly Point[];
}
type Value = number | readonly Sample[];

const LOOKBACK_SECONDS = 300;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** `90s`, `1h30m`. */
export function secondsOf(duration: string): number {
  return [...duration.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, n, unit]) => sum + Number(n) * (UNITS[unit ?? ''] ?? NaN),
    0,
  );
}

/** A series in promtool's notation: `up{job="fuel"}` with `1x5 0+2x10 _ NaN`, one value each interval. */
export function seriesOf(selector: string, values: string, intervalSeconds: number): Series {
  const [, name = '', inner = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(selector) ?? [];
  const labels = Object.fromEntries(
    [...inner.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]),
  );
  const all = values.split(/\s+/).flatMap((item): (number | undefined)[] => {
    const [, start = item, step = '0', times = '0'] = /^(.+?)([+-][\d.]+(?:e\d+)?)?x(\d+)$/.exec(item) ?? [];
    if (start === '_') return Array(Math.max(1, Number(times))).fill(undefined);
    return Array.from({ length: Number(times) + 1 }, (_, at) => Number(start) + at * Number(step));
  });
  const points = all.flatMap((value, at): Point[] =>
    value === undefined ? [] : [[at * intervalSeconds, value]],
  );
  return { labels: { ...labels, __name__: name }, points };
}

/** What an expression gives at a time, in seconds from the first value of the series. */
export function evaluate(expr: string, series: readonly Series[], atSeconds: number): Value {
  const { topNode } = parser.parse(expr);
  return new Evaluation(expr, series, atSeconds).of(only(topNode));
}

class Evaluation {
  readonly #text: string;
  readonly #series: readonly Series[];
  readonly #at: number;

  constructor(text: string, series: readonly Series[], at: number) {
    this.#text = text;
    this.#series = series;
    this.#at = at;
  }

  of(node: SyntaxNode): Value {
    switch (node.name) {
      case 'NumberDurationLiteral':
        return Number(this.#textOf(node));
      case 'ParenExpr':
      case 'StepInvariantExpr':
        return this.of(only(node));
      case 'VectorSelector':
        return this.#instant(node, this.#at);
      case 'OffsetExpr': {
        const back = secondsOf(this.#textOf(node.getChild('OffsetDurationExpr')));
        return this.#instant(only(node), this.#at - back);
      }
      case 'FunctionCall':
        return this.#call(node);
      case 'AggregateExpr':
        return this.#aggregate(node);
      case 'BinaryExpr':
        return this.#binary(node);
      default:
        throw new Error(`${node.name} is not known here: ${this.#textOf(node)}`);
    }
  }

  #textOf(node: SyntaxNode | null): string {
    return node === null ? '' : this.#text.slice(node.from, node.to);
  }

  #selected(node: SyntaxNode): Series[] {
    const name = this.#textOf(node.getChild('Identifier'));
    const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
    return this.#series.filter(
      ({ labels }) =>
        labels.__name__ === name &&
        matchers.every((matcher) => {
          const text = this.#textOf(matcher.getChild('StringLiteral')).slice(1, -1);
          const value = labels[this.#textOf(matcher.getChild('LabelName'))] ?? '';
          const operator = this.#textOf(matcher.getChild('MatchOp'));
          if (operator === '=') return value === text;
          if (operator === '=~') return new RegExp(`^(?:${text})$`).test(value);
          throw new Error(`${operator} is not known here`);
        }),
    );
  }

  #instant(node: SyntaxNode, at: number): Sample[] {
    return this.#selected(node).flatMap(({ labels, points }) => {
      const last = points.findLast(([seconds]) => seconds <= at && seconds > at - LOOKBACK_SECONDS);
      return last === undefined ? [] : [{ labels, value: last[1] }];
    });
  }

  #call(node: SyntaxNode): Value {
    const name = this.#textOf(node.getChild('FunctionIdentifier'));
    if (name === 'time') return this.#at;
    const [matrix, ahead] = childrenOf(node.getChild('FunctionCallBody'));
    if (matrix?.name !== 'MatrixSelector') throw new Error(`${name} is not known here`);
    const range = secondsOf(this.#textOf(matrix.lastChild));
    const over = (points: readonly Point[]): number | undefined =>
      points.length < (name === 'changes' ? 1 : 2)
        ? undefined
        : this.#overTime(name, points, { range, ahead });
    return this.#selected(only(matrix)).flatMap(({ labels, points }) => {
      const value = over(points.filter(([at]) => at <= this.#at && at >= this.#at - range));
      return value === undefined ? [] : [{ labels: withoutName(labels), value }];
    });
  }

  #overTime(
    name: string,
    points: readonly Point[],
    { range, ahead }: { readonly range: number; readonly ahead: SyntaxNode | undefined },
  ): number {
    switch (name) {
      case 'changes':
        return points.filter(([, value], at) => at > 0 && !Object.is(value, points[at - 1]?.[1])).length;
      case 'predict_linear':
        return predicted(points, this.#at + (ahead === undefined ? 0 : (this.of(ahead) as number)));
      case 'delta':
      case 'increase':
        return extrapolated(points, { from: this.#at - range, to: this.#at, isCounter: name === 'increase' });
      case 'rate':
        return extrapolated(points, { from: this.#at - range, to: this.#at, isCounter: true }) / range;
      default:
        throw new Error(`${name} is not known here`);
    }
  }

  #aggregate(node: SyntaxNode): Sample[] {
    const modifier = node.getChild('AggregateModifier');
    const by = modifier === null ? [] : (modifier.getChild('GroupingLabels')?.getChildren('LabelName') ?? []);
    const names = by.map((label) => this.#textOf(label));
    const samples = this.of(only(node.getChild('FunctionCallBody'))) as readonly Sample[];
    const groups = Map.groupBy(samples, ({ labels }) => JSON.stringify(pick(labels, names)));
    const operator = this.#textOf(node.getChild('AggregateOp'));
    return [...groups].map(([key, of]) => {
      const numbers = of.map(({ value }) => value);
      return { labels: JSON.parse(key) as Labels, value: aggregated(operator, numbers) };
    });
  }

  #binary(node: SyntaxNode): Value {
    const [left, , right] = childrenOf(node);
    if (left === undefined || right === undefined) throw new Error(`${this.#textOf(node)} is no expression`);
    const operator = this.#text.slice(left.to, right.from).trim();
    const [a, b] = [this.of(left), this.of(right)];
    if (typeof a === 'number' && typeof b === 'number') return arithmetic(operator, a, b);
    if (SETS.has(operator)) return united(operator, a as readonly Sample[], b as readonly Sample[]);
    const pairs =
      typeof a === 'number'
        ? (b as readonly Sample[]).map((of) => ({ labels: of.labels, x: a, y: of.value, kept: of.value }))
        : a.flatMap(({ labels, value }) => {
            const other =
              typeof b === 'number' ? b : b.find((each) => keyOf(each) === keyOf({ labels }))?.value;
            return other === undefined ? [] : [{ labels, x: value, y: other, kept: value }];
          });
    return pairs.flatMap(({ labels, x, y, kept }): Sample[] => {
      const holds = COMPARISONS[operator];
      if (holds === undefined) return [{ labels: withoutName(labels), value: arithmetic(operator, x, y) }];
      return holds(x, y) ? [{ labels, value: kept }] : [];
    });
  }
}

const SETS = new Set(['and', 'or', 'unless']);
const COMPARISONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
  '>=': (a, b) => a >= b,
  '<=': (a, b) => a <= b,
};

function arithmetic(operator: string, a: number, b: number): number {
  if (operator === '+') return a + b;
  if (operator === '-') return a - b;
  if (operator === '*') return a * b;
  if (operator === '/') return a / b;
  throw new Error(`${operator} is not known here`);
}

function united(operator: string, a: readonly Sample[], b: readonly Sample[]): Sample[] {
  const [inA, inB] = [new Set(a.map(keyOf)), new Set(b.map(keyOf))];
  if (operator === 'or') return [...a, ...b.filter((each) => !inA.has(keyOf(each)))];
  return a.filter((each) => inB.has(keyOf(each)) === (operator === 'and'));
}

/** As Prometheus: NaN counts among the greatest and least only where there is nothing else. */
function aggregated(operator: string, values: readonly number[]): number {
  if (operator === 'sum') return values.reduce((sum, value) => sum + value, 0);
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return Number.NaN;
  if (operator === 'max') return known.reduce((a, b) => Math.max(a, b));
  if (operator === 'min') return known.reduce((a, b) => Math.min(a, b));
  throw new Error(`${operator} is not known here`);
}

/** The growth over the whole range, as Prometheus extends it from the values in it to the range's ends. */
function extrapolated(
  points: readonly Point[],
  { from, to, isCounter }: { readonly from: number; readonly to: number; readonly isCounter: boolean },
): number {
  const [[firstAt, first], [lastAt, last]] = [points[0] as Point, points.at(-1) as Point];
  let growth = last - first;
  if (isCounter)
    for (const [at, [, value]] of points.entries()) {
      const before = points[at - 1]?.[1] ?? value;
      if (value < before) growth += before;
    }
  const sampled = lastAt - firstAt;
  const between = sampled / (points.length - 1);
  let before = firstAt - from;
  if (isCounter && growth > 0 && first >= 0) before = Math.min(before, (sampled * first) / growth);
  const extended = [before, to - lastAt].map((gap) => (gap < between * 1.1 ? gap : between / 2));
  return (growth * extended.reduce((sum, gap) => sum + gap, sampled)) / sampled;
}

/** On the line of least squares. */
function predicted(points: readonly Point[], at: number): number {
  const mean = (of: (point: Point) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean(([seconds]) => seconds), mean(([, value]) => value)];
  const slope =
    mean(([seconds, value]) => (seconds - x) * (value - y)) / mean(([seconds]) => (seconds - x) ** 2);
  return y + slope * (at - x);
}

const keyOf = ({ labels }: Pick<Sample, 'labels'>): string =>
  JSON.stringify(Object.entries(withoutName(labels)).sort());

export function withoutName({ __name__: _, ...labels }: Labels): Labels {
  return labels;
}

function pick(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(
    names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])),
  );
}

function childrenOf(node: SyntaxNode | null): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node?.firstChild ?? null; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

function only(node: SyntaxNode | null): SyntaxNode {
  const first = node?.firstChild;
  if (first === null || first === undefined) throw new Error('an expression is empty');
  return first;
}
