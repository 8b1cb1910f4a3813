import { isValidElement, type VNode } from 'preact';
import * as answers from '../../print/document.ts';
import type { Known } from '../figures/known.ts';
import { html, line } from './html.ts';

const MAX_TEXT = 1_000;
/** The most rows that a table of a page has. */
const MAX_ROWS = 100;
/** Figures older than this show their time. */
const NEW_MS = 4_000;

/** A value of a document, markup, or a sequence of them. */
export type Shown = answers.Cell | VNode | readonly Shown[];
/** A block of a page: a part of a document, or markup. */
export type Part = Facts | answers.Table | VNode | null;
export interface Facts {
  readonly caption?: string | undefined;
  readonly facts: readonly (readonly [name: string, value: Shown])[];
}

/** Shows a document by the rules of the command line, its parts beside each other if there is room. */
export function documentOf(document: object, caption?: string, shown: answers.Shown = {}): VNode {
  const [first, ...others] = answers.partsOf(document, { maxRows: MAX_ROWS, ...shown });
  const parts = first === undefined ? [] : [caption === undefined ? first : { ...first, caption }, ...others];
  return html`<div class="grid document">${parts.map(section)}</div>`;
}

/** Shows a list of documents as a table. */
export function listOf(caption: string, of: readonly object[], shown: answers.Shown = {}): answers.Table {
  return {
    ...answers.tableOf(caption.split(/\W/)[0]?.toLowerCase() ?? '', of, { maxRows: MAX_ROWS, ...shown }),
    caption,
  };
}

/** Shows a value as text, a time, a badge or a link. */
export function show(cell: Shown): VNode | string | number {
  if (typeof cell === 'number') return cell;
  if (typeof cell === 'string') return withTimes(line(cell, MAX_TEXT));
  if (isValidElement(cell)) return cell;
  if ('state' in cell) return html`<span class=${`badge ${cell.tone}`}>${line(cell.state)}</span>`;
  if ('noun' in cell) return linkTo(cell);
  if ('time' in cell) return timeOf(cell.time);
  if (!('members' in cell)) return html`${cell.map((part, at) => html`${at === 0 ? '' : ' '}${show(part)}`)}`;
  return html`${cell.members.map(
    ([name, value], at) =>
      html`${at === 0 ? '' : ', '}<span class="name">${line(name)}</span> ${show(value)}`,
  )}`;
}

function timeOf(iso: string): VNode {
  return html`<time datetime=${iso} title=${iso}>${iso.slice(0, 19).replace('T', ' ')}Z</time>`;
}

const DATE_TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)/;

/** Gives times within a sentence the form of times that stand alone. */
function withTimes(text: string): VNode | string {
  const parts = text.split(DATE_TIME);
  return parts.length === 1 ? text : html`${parts.map((part, at) => (at % 2 === 0 ? part : timeOf(part)))}`;
}

const PATHS = {
  account: '/accounts',
  key: '/keys',
  delivery: '/deliveries',
  transaction: '/transactions',
} as const satisfies Record<answers.Noun, string>;

function linkTo({ noun, id }: { readonly noun: answers.Noun; readonly id: string | number }): VNode {
  const text = String(id);
  const name = noun === 'delivery' ? `${line(text, 8)}` : line(text);
  return html`<a href=${`${PATHS[noun]}/${encodeURIComponent(text.toWellFormed())}`}>${
    typeof id === 'number' ? name : html`<code>${name}</code>`
  }</a>`;
}

/** Returns an address of this console. */
export function href(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value.toWellFormed()]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

export function section(part: Part): VNode | null {
  if (part === null || isValidElement(part)) return part;
  return html`<section>${content(part)}</section>`;
}

/** Puts parts beside each other if there is room. */
export function grid(...parts: readonly Part[]): VNode {
  return html`<div class="grid">${parts.map(section)}</div>`;
}

export function content(part: Facts | answers.Table): VNode {
  if (!('facts' in part)) return table(part);
  const { caption, facts } = part;
  return html`${caption === undefined ? null : html`<h2>${line(caption)}</h2>`}<dl class="facts">
    ${facts.map(([name, value]) => html`<div><dt>${line(name)}</dt><dd>${show(value)}</dd></div>`)}
  </dl>`;
}

/** A table, named by its caption. On a phone, cells without a value are left out. */
function table({ caption = '', columns, count, rows }: answers.Table): VNode {
  const classOf = (at: number, cell?: answers.Cell): string | undefined =>
    cell === answers.NOTHING ? 'nothing' : columns[at]?.isNumber ? 'number' : undefined;
  const cellOf = (cell: answers.Cell, at: number): VNode =>
    html`<td class=${classOf(at, cell)} data-head=${line(columns[at]?.head ?? '')}>${show(cell)}</td>`;
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${line(caption)}>
    <table>
      <caption>${line(caption)}</caption>
      <thead><tr>${columns.map(({ head }, at) => html`<th scope="col" class=${classOf(at)}>${line(head)}</th>`)}</tr></thead>
      <tbody>${rows.map(({ id, cells }) => html`<tr id=${line(id)}>${cells.map(cellOf)}</tr>`)}${
        count === 0 ? html`<tr><td class="empty">none</td></tr>` : null
      }</tbody>
    </table>
  </div>${count > rows.length ? note(`The first ${rows.length} of ${number(count)}.`) : null}`;
}

export function note(text: Shown): VNode {
  return html`<p class="note">${show(text)}</p>`;
}

/** Shows why a page can't show what was asked for. */
export function problem(content: unknown): VNode {
  return html`<section class="problem">${content}</section>`;
}

/** Formats a number with separators. A count that reached its limit says so. */
export function number(value: number, upTo = Infinity): string {
  return `${value.toLocaleString('en-US')}${value >= upTo ? ' or more' : ''}`;
}

/** Shows a value, or that it is unknown and why: never 0 instead. */
export function orUnknown<T>(found: Known<T>, shown: (value: T) => Shown): Shown {
  return 'unknown' in found ? unknown(found.unknown) : shown(found.value);
}

export function unknown(reason: string): VNode {
  return html`<span class="unknown" title=${reason}>unknown</span>`;
}

/**
 * Shows a document or a list of documents, with the time at which it was read if that was some time before `nowMs`; or that
 * it is unknown.
 */
export function sectionOf<T>(
  caption: string,
  { found, nowMs }: { readonly found: Known<T>; readonly nowMs: number },
  documents: (value: T) => object,
): VNode {
  if ('unknown' in found) return html`<section><h2>${caption}</h2><p>${unknown(found.unknown)}</p></section>`;
  const shown = documents(found.value);
  const part = Array.isArray(shown) ? listOf(caption, shown) : { caption, facts: answers.factsOf(shown) };
  const asOf = nowMs - found.atMs >= NEW_MS ? note(['As of', answers.time(found.atMs)]) : null;
  return html`<section>${content(part)}${asOf}</section>`;
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** The possible values, apart from none. */
  readonly choices?: readonly string[];
}

/** A form that asks for a page. `all` is the text of a link to the page without anything filled in. */
export function form(options: {
  readonly action: string;
  readonly fields: readonly Field[];
  readonly given: Readonly<Partial<Record<string, string>>>;
  readonly submit: string;
  readonly all?: string;
}): VNode {
  const { action, fields, given, submit, all } = options;
  const input = ({ name, placeholder, choices }: Field): VNode =>
    choices === undefined
      ? html`<input name=${name} value=${given[name] ?? ''} placeholder=${placeholder} autocomplete="off" />`
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

/** A link to the next part of a list. */
export function next(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  text: string,
): VNode | null {
  return query.after === undefined
    ? null
    : html`<p class="pages"><a href=${href(path, query)}>${text}</a></p>`;
}
