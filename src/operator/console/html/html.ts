import { html as markup } from 'htm/preact';
import type { VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { printable, printableLine } from '../../../base/printable.ts';

/**
 * Makes markup. Every value in it is escaped, as text or as an attribute. Nothing else makes HTML, and names of elements
 * and attributes are never values.
 */
export const html: (strings: TemplateStringsArray, ...values: readonly unknown[]) => VNode = markup;

export const render: (content: VNode) => string = renderToString;

const MAX_LINE = 200;
const MAX_TEXT = 1_000;

/** Shows text from outside on one line, shortened. Characters that would act on a page are shown instead. */
export function line(text: string, maxCharacters = MAX_LINE): string {
  const shown = printableLine(text.slice(0, maxCharacters));
  return text.length > maxCharacters ? `${shown}…` : shown;
}

/** Shows text of several lines, such as an answer's body, and says if it is shortened. */
export function block(text: string): VNode {
  const cut =
    text.length > MAX_TEXT
      ? html`<p class="note">The first ${MAX_TEXT} of ${text.length} characters.</p>`
      : null;
  return html`<pre>${printable(text.slice(0, MAX_TEXT))}</pre>${cut}`;
}
