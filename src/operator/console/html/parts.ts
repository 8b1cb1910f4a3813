import { isValidElement, type VNode } from 'preact';
import * as answers from '../../answers/columns.ts';
import type { Known } from '../figures/known.ts';
import { html, line } from './html.ts';

const MAX_TEXT = 1_000;
/** Rows of an answer that one page shows. */
const MAX_ROWS = 100;
/** Figures that are older than this say so. */
const NEW_MS = 4_000;

/** A value of an answer, or markup. */
export type Shown = answers.Cell | VNode | readonly Shown[];
/** What stands by itself on a page: a part of an answer, or markup. */
export type Part = Facts | answers.Table | VNode | null;

export interface Facts {
  readonly caption?: string;
  readonly facts: readonly (readonly [name: string, value: Shown])[];
}

/** Text, a time, a badge or a link. */
export function show(cell: Shown): VNode | string | number {
  if (typeof cell === 'number') return cell;
  if (typeof cell === 'string') return withTimes(line(cell, MAX_TEXT));
  if (isValidElement(cell)) return cell;
  if ('state' in cell) return html`<span class=${`badge ${cell.tone}`}>${line(cell.state)}</span>`;
  if ('percent' in cell) return meter(cell.percent);
  if ('noun' in cell) return linkTo(cell);
  if (!('time' in cell)) return html`${cell.map((part) => html`${show(part)} `)}`;
  return timeOf(cell.time);
}

function timeOf(iso: string): VNode {
  return html`<time datetime=${iso} title=${iso}>${iso.slice(0, 19).replace('T', ' ')}Z</time>`;
}

const DATE_TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)/;

/** Times within a sentence have the form of those that stand alone. */
function withTimes(text: string): VNode | string {
  const parts = text.split(DATE_TIME);
  return parts.length === 1 ? text : html`${parts.map((part, at) => (at % 2 === 0 ? part : timeOf(part)))}`;
}

function meter(percent: number): VNode {
  return html`${percent} % <meter min="0" low="10" high="50" max="100" optimum="0" value=${percent} aria-label=${`${percent} % failed`}></meter>`;
}

const PATHS = {
  account: '/accounts',
  key: '/keys',
  webhook: '/webhooks',
  delivery: '/deliveries',
  transaction: '/transactions',
} as const satisfies Record<answers.Noun, string>;

function linkTo({ noun, id, text }: answers.Link): VNode {
  const name = noun === 'delivery' ? `${text.slice(0, 8)}…` : line(text);
  return html`<a href=${`${PATHS[noun]}/${encodeURIComponent(String(id).toWellFormed())}`}>${
    typeof id === 'number' ? name : html`<code>${name}</code>`
  }</a>`;
}

/** An address of this console. */
export function href(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value.toWellFormed()]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** A part as a page shows it: what is of an answer by the columns that the command line shows too. */
export function section(part: Part): VNode | null {
  if (part === null || isValidElement(part)) return part;
  return html`<section>${content(part)}</section>`;
}

/** Parts beside each other, where there is room. */
export function grid(...parts: readonly Part[]): VNode {
  return html`<div class="grid">${parts.map(section)}</div>`;
}

export function content(part: Facts | answers.Table): VNode {
  if (!('facts' in part)) return table(part);
  const { caption, facts } = part;
  return html`${caption === undefined ? null : html`<h2>${caption}</h2>`}<dl class="facts">
    ${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${show(value)}</dd></div>`)}
  </dl>`;
}

/** A phone leaves such a cell out. */
const NOTHING: ReadonlySet<string> = new Set(['', '–']);

/** A table that its caption names. */
function table({ caption, columns, count, rows, empty }: answers.Table): VNode {
  const classOf = (at: number, cell?: answers.Cell): string | undefined =>
    cell !== undefined && NOTHING.has(answers.textOf(cell))
      ? 'nothing'
      : columns[at]?.number
        ? 'number'
        : undefined;
  const body =
    count === 0
      ? html`<tr><td colspan=${columns.length} class="empty">${empty}</td></tr>`
      : rows(MAX_ROWS).map(
          ({ id, cells }) =>
            html`<tr id=${id}>${cells.map(
              (cell, at) =>
                html`<td class=${classOf(at, cell)} data-head=${columns[at]?.head}>${show(cell)}</td>`,
            )}</tr>`,
        );
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption>${caption}</caption>
      <thead><tr>${columns.map(({ head }, at) => html`<th scope="col" class=${classOf(at)}>${head}</th>`)}</tr></thead>
      <tbody>${body}</tbody>
    </table>
  </div>${count > MAX_ROWS ? note(`The first ${MAX_ROWS} of ${number(count)}.`) : null}`;
}

export function note(text: Shown): VNode {
  return html`<p class="note">${show(text)}</p>`;
}

/** What keeps an operator from what was asked for. */
export function problem(content: unknown): VNode {
  return html`<section class="problem">${content}</section>`;
}

/** A number with its thousands apart; one that was counted up to a limit says so. */
export function number(value: number, upTo = Infinity): string {
  return `${value.toLocaleString('en-US')}${value >= upTo ? ' or more' : ''}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** What is known of something, or that it is not and why: never 0 in its place. */
export function orUnknown<T>(found: Known<T>, shown: (value: T) => Shown): Shown {
  return 'unknown' in found ? unknown(found.unknown) : shown(found.value);
}

export function unknown(reason: string): VNode {
  return html`<span class="unknown" title=${reason}>unknown</span>`;
}

/** A part of what is known, with the time of figures that were read some time before the page was made. */
export function partOf<T>(
  found: Known<T>,
  { caption, atMs }: { readonly caption: string; readonly atMs: number },
  part: (value: T) => Facts | answers.Table,
): VNode {
  if ('unknown' in found) return html`<section><h2>${caption}</h2><p>${unknown(found.unknown)}</p></section>`;
  const isOld = atMs - found.atMs >= NEW_MS;
  const asOf = isOld ? note(['As of', answers.time(found.atMs)]) : null;
  return html`<section>${content(part(found.value))}${asOf}</section>`;
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly size: number;
  readonly placeholder?: string;
  /** All that it may be, besides nothing. */
  readonly choices?: readonly string[];
}

/** Asks for a page with what is filled in. `all` stands beside it: the page without. */
export function form(options: {
  readonly action: string;
  readonly fields: readonly Field[];
  readonly given: Readonly<Partial<Record<string, string>>>;
  readonly submit: string;
  readonly all?: string;
}): VNode {
  const { action, fields, given, submit, all } = options;
  const input = ({ name, size, placeholder, choices }: Field): VNode =>
    choices === undefined
      ? html`<input name=${name} value=${given[name] ?? ''} placeholder=${placeholder} size=${size} autocomplete="off" />`
      : html`<select name=${name}>
          <option value="">any</option>
          ${choices.map((choice) => html`<option value=${choice} selected=${given[name] === choice}>${choice}</option>`)}
        </select>`;
  return html`<form class="filters" action=${action} method="get">
    ${fields.map((field) => html`<label>${field.label}${input(field)}</label>`)}
    <button type="submit">${submit}</button>
    ${all === undefined ? null : html`<a href=${action}>${all}</a>`}
  </form>`;
}

/** The way to what a list continues with. */
export function next(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  text: string,
): VNode | null {
  return query.after === undefined
    ? null
    : html`<p class="pages"><a href=${href(path, query)}>${text}</a></p>`;
}
