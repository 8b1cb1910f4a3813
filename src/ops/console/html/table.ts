import type { VNode } from 'preact';
import { html } from './html.ts';

export interface Column {
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
  readonly columns: readonly (string | Column)[];
  readonly rows: readonly TableRow[];
  readonly empty: string;
  readonly hidesCaption?: boolean;
}): VNode {
  const { caption, rows, empty, hidesCaption = false } = options;
  const columns = options.columns.map(
    (column): Column => (typeof column === 'string' ? { head: column } : column),
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

/** Names and what they are, in two columns. */
export function facts(list: readonly (readonly [string, unknown])[]): VNode {
  return html`<dl class="facts">
    ${list.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
