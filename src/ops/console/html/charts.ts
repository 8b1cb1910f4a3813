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

interface Chart {
  /** Of the page: what is open stays open. */
  readonly id: string;
  readonly title: string;
  /** What the figures are of, and their unit. */
  readonly note: string;
}

export interface Bars extends Chart {
  /** What stands on each other, from below: its name and its class. */
  readonly parts: readonly { readonly name: string; readonly tone: 'good' | 'bad' }[];
  readonly points: readonly { readonly atMs: number; readonly values: readonly number[] }[];
}

/** Bars of the last sixty minutes, one for each, with a table of the same figures. */
export function barChart({ parts, points, ...chart }: Bars): VNode {
  const sums = points.map(({ values }) => values.reduce((sum, value) => sum + value, 0));
  const max = sums.reduce((a, b) => Math.max(a, b), 0);
  const step = WIDTH / MINUTES;
  const firstAt = MINUTES - points.length;
  const bars = points.map(({ values }, at) => {
    let below = 0;
    return values.map((value, part) => {
      const height = max === 0 ? 0 : (value / max) * HEIGHT;
      below += height;
      if (value === 0) return null;
      return html`<rect x=${round((firstAt + at) * step)} y=${round(HEIGHT - below)} width=${round(step * 0.8)} height=${round(Math.max(height, 1))} class=${parts[part]?.tone} />`;
    });
  });
  const rows = points.map(({ atMs, values }) => [minute(atMs), ...values]);
  return figure(chart, { drawing: bars, max, columns: ['Time', ...parts.map(({ name }) => name)], rows });
}

export interface Lines extends Chart {
  readonly lines: readonly { readonly name: string; readonly tone: 'first' | 'second' | 'third' }[];
  readonly points: readonly { readonly atMs: number; readonly values: readonly (number | null)[] }[];
}

/** Lines over the last hour, interrupted where a figure is not known, with a table of the same figures. */
export function lineChart({ lines, points, ...chart }: Lines): VNode {
  const max = points.flatMap(({ values }) => values).reduce((a: number, b) => Math.max(a, b ?? 0), 0);
  const lastMs = points.at(-1)?.atMs ?? 0;
  const x = (atMs: number): number => WIDTH * (1 - (lastMs - atMs) / SPAN_MS);
  const y = (value: number): number => HEIGHT - (max === 0 ? 0 : (value / max) * (HEIGHT - 2)) - 1;
  const drawing = lines.map(({ tone }, at) => {
    let path = '';
    let isDrawing = false;
    for (const { atMs, values } of points) {
      const value = values[at];
      if (value !== null && value !== undefined) {
        const place = `${round(x(atMs))} ${round(y(value))}`;
        path += isDrawing ? `L${place}` : `M${place}h.1`;
      }
      isDrawing = value !== null && value !== undefined;
    }
    return html`<path d=${path} class=${`line ${tone}`} />`;
  });
  const every = Math.max(1, Math.ceil(points.length / MAX_ROWS));
  const rows = points
    .filter((_, at) => (points.length - 1 - at) % every === 0)
    .map(({ atMs, values }) => [minute(atMs), ...values.map((value) => value ?? 'unknown')]);
  return figure(chart, { drawing, max, columns: ['Time', ...lines.map(({ name }) => name)], rows });
}

export interface Dots extends Chart {
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
  { id, title, note }: Chart,
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

function minute(atMs: number): string {
  return `${formatDateTime(atMs).slice(11, 16)}Z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
