import type { VNode } from 'preact';
import { DAY_MS, formatDateTime } from '../../../domain/values/date-time.ts';
import { html } from './html.ts';
import { content, listOf } from './parts.ts';

const WIDTH = 300;
const HEIGHT = 56;
/** The length of the time axis, unless a chart has dots: the last hour. */
const SPAN_MS = 3_600_000;
const BAR = WIDTH / 60;
/** The most rows in the table of a chart. */
const MAX_ROWS = 60;

interface Point {
  readonly atMs: number;
  readonly values: readonly (number | null)[];
  /** The colour of a dot, and the answer that it stands for. */
  readonly tone?: string;
  readonly answer?: string;
}

export interface Chart {
  /** The element's id, by which an opened table stays open when the page is refreshed. */
  readonly id: string;
  readonly title: string;
  /** Says what the figures are about. */
  readonly note: string;
  /** Bars are stacked, one stack a minute. Lines have gaps where a figure is not known. */
  readonly kind: 'bars' | 'lines' | 'dots';
  /** The names and colours of the values, in their order. */
  readonly series: readonly { readonly name: string; readonly tone: string }[];
  readonly points: readonly Point[];
}

/** Draws figures over time, with a table of them. Bars and lines span the last hour, dots from the first to the last. */
export function chart(shown: Chart): VNode {
  const { id, title, note, kind, series, points } = shown;
  const highest = ({ values }: Point): number =>
    kind === 'bars' ? sum(values) : values.reduce((most: number, value) => Math.max(most, value ?? 0), 0);
  const max = points.reduce((most, point) => Math.max(most, highest(point)), 0);
  const every = kind === 'lines' ? Math.max(1, Math.ceil(points.length / MAX_ROWS)) : 1;
  const rows = points
    .filter((_, at) => (points.length - 1 - at) % every === 0)
    .map(({ atMs, values, answer }) => ({
      time: formatDateTime(atMs),
      answer,
      ...Object.fromEntries(series.map(({ name }, at) => [name, values[at] ?? 'unknown'])),
    }));
  return html`<figure id=${id}>
    <figcaption><strong>${title}</strong> <span class="note">${note}</span></figcaption>
    <div class="chart">
      <span class="max">${points.length === 0 ? '' : round(max)}</span>
      <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">${drawn(shown, max)}</svg>
      ${axis(shown)}
    </div>
    <details id=${`${id}-figures`}>
      <summary>${title} as figures</summary>
      ${content(listOf(title, rows.reverse()))}
    </details>
  </figure>`;
}

/** Returns the last time of a chart, and how long before that it begins. */
function spanOf({ kind, points }: Chart) {
  const lastMs = points.at(-1)?.atMs ?? 0;
  return { lastMs, spanMs: kind === 'dots' ? lastMs - (points[0]?.atMs ?? 0) || SPAN_MS : SPAN_MS };
}

/** Labels the beginning and the end, and the middle of a chart of less than a day. */
function axis(shown: Chart): VNode | null {
  if (shown.points.length === 0) return null;
  const { lastMs, spanMs } = spanOf(shown);
  const parts = spanMs > DAY_MS ? [1, 0] : [1, 0.5, 0];
  const labels = parts.map((part) => {
    const iso = formatDateTime(Math.round(lastMs - part * spanMs));
    return html`<time datetime=${iso}>${spanMs > DAY_MS ? iso.slice(0, 10) : `${iso.slice(11, 19)}Z`}</time>`;
  });
  return html`<div class="axis" aria-hidden="true">${labels}</div>`;
}

function drawn(shown: Chart, max: number): readonly unknown[] {
  const { kind, series, points } = shown;
  const { lastMs, spanMs } = spanOf(shown);
  const x = (atMs: number): number => round(3 + (WIDTH - 6) * (1 - (lastMs - atMs) / spanMs));
  const y = (value: number): number => round(HEIGHT - 1 - (value / (max || 1)) * (HEIGHT - 2));
  if (kind === 'dots') {
    return points.map(
      ({ atMs, values: [value], tone }) =>
        html`<path d=${`M${x(atMs)} ${y(value ?? 0)}h0`} class=${`dot ${tone}`} />`,
    );
  }
  if (kind === 'lines') {
    return series.map(({ tone }, at) => {
      const steps = points.map(({ atMs, values }, index) => {
        const value = values[at] ?? null;
        if (value === null) return '';
        const isFirst = (points[index - 1]?.values[at] ?? null) === null;
        return isFirst ? `M${x(atMs)} ${y(value)}h.1` : `L${x(atMs)} ${y(value)}`;
      });
      return html`<path d=${steps.join('')} class=${`line ${tone}`} />`;
    });
  }
  return points.flatMap(({ atMs, values }) =>
    values.map((value, at) => {
      if (value === null || value === 0) return null;
      const below = sum(values.slice(0, at));
      const top = y(below + value);
      return html`<rect x=${x(atMs) - BAR / 2} y=${top} width=${round(BAR * 0.8)} height=${round(Math.max(1, y(below) - top))} class=${series[at]?.tone} />`;
    }),
  );
}

function sum(values: readonly (number | null)[]): number {
  return values.reduce((total: number, value) => total + (value ?? 0), 0);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
