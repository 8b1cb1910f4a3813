import type { VNode } from 'preact';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { html } from './html.ts';
import { table } from './table.ts';

const WIDTH = 300;
/** What stands on the time axis of a chart of this process: its last hour. */
const SPAN_MS = 3_600_000;
const MINUTES = 60;
const HEIGHT = 56;
/** Points of one line that can be told apart on a screen. */
const MAX_ROWS = 60;

interface Figure {
  /** The element's id, by which what is open stays open. */
  readonly id: string;
  readonly title: string;
  /** What the figures are of, and their unit. */
  readonly note: string;
}

export interface Chart<Tone extends string> extends Figure {
  /** Names and classes, in the order of the values. */
  readonly series: readonly { readonly name: string; readonly tone: Tone }[];
  readonly points: readonly { readonly atMs: number; readonly values: readonly (number | null)[] }[];
}

/** Bars of the last sixty minutes that stand on each other, one for each, with a table of the same figures. */
export function barChart({ series, points, ...of }: Chart<'good' | 'bad'>): VNode {
  const sums = points.map(({ values }) => values.reduce((sum: number, value) => sum + (value ?? 0), 0));
  const max = sums.reduce((a, b) => Math.max(a, b), 0);
  const step = WIDTH / MINUTES;
  const firstAt = MINUTES - points.length;
  const drawing = points.map(({ values }, at) => {
    let below = 0;
    return values.map((value, part) => {
      const height = max === 0 ? 0 : ((value ?? 0) / max) * HEIGHT;
      below += height;
      if (height === 0) return null;
      return html`<rect x=${round((firstAt + at) * step)} y=${round(HEIGHT - below)} width=${round(step * 0.8)} height=${round(Math.max(height, 1))} class=${series[part]?.tone} />`;
    });
  });
  return figureOfTime({ ...of, series, points, drawing, max });
}

/** Lines over the last hour, interrupted where a figure is not known, with a table of the same figures. */
export function lineChart({ series, points, ...of }: Chart<'first' | 'second' | 'third'>): VNode {
  const max = points.flatMap(({ values }) => values).reduce((a: number, b) => Math.max(a, b ?? 0), 0);
  const lastMs = points.at(-1)?.atMs ?? 0;
  const drawing = series.map(({ tone }, at) => {
    let path = '';
    let isDrawing = false;
    for (const { atMs, values } of points) {
      const value = values[at] ?? null;
      if (value !== null) {
        const x = WIDTH * (1 - (lastMs - atMs) / SPAN_MS);
        const y = HEIGHT - (max === 0 ? 0 : (value / max) * (HEIGHT - 2)) - 1;
        path += isDrawing ? `L${round(x)} ${round(y)}` : `M${round(x)} ${round(y)}h.1`;
      }
      isDrawing = value !== null;
    }
    return html`<path d=${path} class=${`line ${tone}`} />`;
  });
  const every = Math.max(1, Math.ceil(points.length / MAX_ROWS));
  const shown = points.filter((_, at) => (points.length - 1 - at) % every === 0);
  return figureOfTime({ ...of, series, points: shown, drawing, max });
}

function figureOfTime({
  series,
  points,
  drawing,
  max,
  ...of
}: Chart<string> & { readonly drawing: unknown; readonly max: number }): VNode {
  const rows = points.map(({ atMs, values }) => [
    `${formatDateTime(atMs).slice(11, 16)}Z`,
    ...values.map((value) => value ?? 'unknown'),
  ]);
  return figure(of, { drawing, max, columns: ['Time', ...series.map(({ name }) => name)], rows });
}

export interface Dots extends Figure {
  readonly points: readonly {
    readonly atMs: number;
    readonly value: number;
    readonly tone: 'good' | 'bad';
    readonly name: string;
  }[];
  readonly valueName: string;
}

/** One dot for each point over time, with a table of the same figures. */
export function dotChart({ points, valueName, ...chart }: Dots): VNode {
  const max = points.reduce((a, { value }) => Math.max(a, value), 0);
  const [firstMs, lastMs] = [points[0]?.atMs ?? 0, points.at(-1)?.atMs ?? 0];
  const drawing = points.map(({ atMs, value, tone }) => {
    const x = lastMs === firstMs ? WIDTH / 2 : 3 + ((atMs - firstMs) / (lastMs - firstMs)) * (WIDTH - 6);
    const y = max === 0 ? HEIGHT - 3 : HEIGHT - 3 - (value / max) * (HEIGHT - 6);
    return html`<path d=${`M${round(x)} ${round(y)}h0`} class=${`dot ${tone}`} />`;
  });
  const rows = points.map(({ atMs, value, name }) => [formatDateTime(atMs), name, Math.round(value)]);
  return figure(chart, { drawing, max: Math.round(max), columns: ['Time', 'Answer', valueName], rows });
}

function figure(
  { id, title, note }: Figure,
  options: {
    readonly drawing: unknown;
    readonly max: number;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly (string | number)[])[];
  },
): VNode {
  const { drawing, max, columns, rows } = options;
  return html`<figure id=${id}>
    <figcaption><strong>${title}</strong> <span class="note">${note}</span></figcaption>
    <div class="chart">
      <span class="max">${rows.length === 0 ? '' : round(max)}</span>
      <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">${drawing}</svg>
    </div>
    <details id=${`${id}-figures`}>
      <summary>${title} as figures</summary>
      ${table({
        caption: title,
        hidesCaption: true,
        columns: columns.map((head, at) =>
          at === 0 || head === 'Answer' ? head : { head, number: true as const },
        ),
        rows: rows.toReversed().map((cells) => ({ cells })),
        empty: 'No figures yet.',
      })}
    </details>
  </figure>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
