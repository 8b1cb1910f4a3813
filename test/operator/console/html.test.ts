import { expect, test } from 'vitest';
import { block, html, line, render } from '../../../src/operator/console/html/html.ts';

const UNSAFE = 'a\u0007b\u202ec\u001b[31md';
/** What a browser or a terminal would do something with. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ACTIVE = /[\u0000-\u0009\u000b-\u001f\u202a-\u202e\u2066-\u2069]/;

test('text from outside shows characters that change its direction or control a terminal, and does nothing', () => {
  expect(UNSAFE).toMatch(ACTIVE);
  for (const shown of [render(html`<p>${line(UNSAFE)}</p>`), render(html`${block(UNSAFE)}`)]) {
    expect(shown).not.toMatch(ACTIVE);
    expect(shown).toMatch(/a.*b.*c.*d/s);
  }
});

test('long text is cut, and how much is left out is said', () => {
  expect(line('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`);
  expect(render(html`${block('x'.repeat(1_001))}`)).toContain('The first 1000 of 1001 characters.');
  expect(render(html`${block('x'.repeat(1_000))}`)).not.toContain('characters');
});
