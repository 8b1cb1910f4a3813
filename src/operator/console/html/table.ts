import type { VNode } from 'preact';
import type { Cell, Section, Table } from '../../answers/columns.ts';
import { html } from './html.ts';
import { shown } from './values.ts';

/** Rows of an answer that one page shows. */
const MAX_ROWS = 100;

export interface Head {
  readonly head: string;
  /** Numbers stand below each other. */
  readonly number?: true;
}

export interface TableRow {
  /** The same for the same thing in every refresh. */
  readonly id?: string;
  readonly cells: readonly unknown[];
}

/** A table that its caption names; `empty` is said where there is no row. */
export function table(options: {
  readonly caption: string;
  readonly columns: readonly (string | Head)[];
  readonly rows: readonly TableRow[];
  readonly empty: string;
  readonly hidesCaption?: boolean;
}): VNode {
  const { caption, rows, empty, hidesCaption = false } = options;
  const columns = options.columns.map(
    (column): Head => (typeof column === 'string' ? { head: column } : column),
  );
  const classOf = (at: number): string | undefined => (columns[at]?.number ? 'number' : undefined);
  const body =
    rows.length === 0
      ? html`<tr><td colspan=${columns.length} class="empty">${empty}</td></tr>`
      : rows.map(
          ({ id, cells }) =>
            html`<tr id=${id}>${cells.map((cell, at) => html`<td class=${classOf(at)}>${cell}</td>`)}</tr>`,
        );
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption class=${hidesCaption ? 'hidden' : undefined}>${caption}</caption>
      <thead><tr>${columns.map(({ head }, at) => html`<th scope="col" class=${classOf(at)}>${head}</th>`)}</tr></thead>
      <tbody>${body}</tbody>
    </table>
  </div>`;
}

/** A part of an answer, by the columns that the command line shows too. */
export function sectionOf(section: Section): VNode {
  return 'facts' in section ? factsOf(section.facts) : tableOf(section);
}

export function factsOf(list: readonly (readonly [string, Cell])[]): VNode {
  return facts(list.map(([name, value]) => [name, shown(value)] as const));
}

export function tableOf({ caption, columns, count, rows, empty }: Table): VNode {
  const first = rows(MAX_ROWS).map(({ id, cells }) => ({ id, cells: cells.map((cell) => shown(cell)) }));
  return html`${table({ caption, columns, rows: first, empty })}${
    count > MAX_ROWS
      ? html`<p class="note">The first ${MAX_ROWS} of ${count.toLocaleString('en-US')}.</p>`
      : null
  }`;
}

/** Names and what they are, in two columns. */
export function facts(list: readonly (readonly [string, unknown])[]): VNode {
  return html`<dl class="facts">
    ${list.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
