import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandLine } from '../../../src/operator/console/html/commands.ts';
import { block, html, line, render } from '../../../src/operator/console/html/html.ts';
import {
  content,
  documentOf,
  listOf,
  note,
  type Shown,
  show,
} from '../../../src/operator/console/html/parts.ts';
import { cellOf, link } from '../../../src/operator/print/document.ts';

/** Text with characters that end an attribute, an element or a comment. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '"',
        "'",
        '<',
        '>',
        '&',
        '`',
        '=',
        '<script>',
        '</script>',
        '<!--',
        '-->',
        '&lt;',
        '</main>',
      ),
      fc.constantFrom(
        'onerror=',
        'javascript:',
        '\u0000',
        '\u202e',
        '\r',
        '\n',
        '\u001b[31m',
        '${',
        '\\',
        '\ud800',
      ),
      fc.string({ unit: 'binary', maxLength: 5 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

/** The text of markup without its elements, as a browser reads it. */
function textOf(markup: string): string {
  return markup
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

/** Every kind of cell with this text in it. */
function cellsOf(text: string): readonly Shown[] {
  const nouns = ['account', 'key', 'delivery', 'transaction'] as const;
  return [
    text,
    `${text} at 2026-09-03T08:15:30.250Z ${text}`,
    { state: text, tone: 'bad' },
    ...nouns.map((noun) => link(noun, text)),
    { members: [[text, text]] },
    [text, [text]],
    cellOf('tags', [text, { [text]: text }]),
    cellOf('detail', { [text]: text, list: [text], inner: { [text]: text } }),
  ];
}

/** Every part of a page with this text in it. */
function pageOf(text: string): string {
  const things = [{ id: text, state: text, key: text, delivery: text, more: { [text]: text }, [text]: text }];
  return render(
    html`${cellsOf(text).map((cell) => html`<p>${show(cell)}</p>${note(cell)}`)}${content({ caption: text, facts: [[text, text]] })}${content(listOf(text, things))}${documentOf({ text, [text]: [{ [text]: text }], url: text }, text)}${block(text)}`,
  );
}

test('text never becomes markup: a page has only the elements and attributes of its templates', () => {
  const shapeOf = (markup: string): string => markup.replace(/="[^"]*"/g, '=""').replace(/>[^<]*</g, '><');
  const templatesOf = (text: string): string =>
    render(
      html`<p title=${text} class="a">${text}</p><a href=${`/keys/${encodeURIComponent(text)}`}>${[text, text]}</a><input value=${text} />`,
    );
  const shape = [shapeOf(templatesOf('x')), shapeOf(pageOf('x'))];
  fc.assert(
    fc.property(
      hostile.filter((text) => text.isWellFormed()),
      (given) => {
        const text = `x${given}`; // neither empty nor a number, which have forms of their own
        const page = pageOf(text);
        expect([shapeOf(templatesOf(text)), shapeOf(page)]).toEqual(shape);
        expect(page).not.toMatch(/[^\P{Cc}\n\t]|\p{Bidi_Control}/u);
        expect(textOf(render(html`<p>${text}</p>`))).toBe(text);
      },
    ),
  );
});

test('text on a line is shortened, and has no character that ends the line or changes its direction', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 1, max: 40 }), (text, max) => {
      const shown = line(text, max);
      expect(shown).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
      expect(shown.length).toBeLessThanOrEqual(6 * max + 1);
    }),
  );
});

const wordsToCopy = fc.array(
  // The shell's output below is separated by \u0000 and \u0001.
  hostile.map((text) =>
    text.replaceAll('\u0000', '').replaceAll('\u0001', '').replace(/\n+$/, '').toWellFormed(),
  ),
  { minLength: 1, maxLength: 5 },
);

test.for(['bash', 'sh'])(
  '%s reads a copied command as its words, and a terminal gets no control character and no mark of direction',
  (shell) => {
    const many = fc.sample(wordsToCopy, 60);
    const script = many.map((each) => `printf '%s\\0' ${commandLine(each)}; printf '\\1\\0'`).join('\n');
    expect(script.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    const printed = execFileSync(shell, ['-c', script]).toString('utf8');
    const read = printed
      .split('\u0001\u0000')
      .slice(0, -1)
      .map((each) => each.split('\u0000').slice(0, -1));
    expect(read).toEqual(many);
  },
);
