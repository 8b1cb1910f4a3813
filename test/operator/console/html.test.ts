import { expect, test } from 'vitest';
import { block, html, line, render } from '../../../src/operator/console/html/html.ts';

const UNSAFE = 'a\u0007b\u202ec\u001b[31md';
/** Characters that a browser or a terminal would act on. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ACTIVE = /[\u0000-\u0009\u000b-\u001f\u202a-\u202e\u2066-\u2069]/;

test('characters that change the direction of text or control a terminal are shown, and have no effect', () => {
  expect(UNSAFE).toMatch(ACTIVE);
  for (const shown of [render(html`<p>${line(UNSAFE)}</p>`), render(html`${block(UNSAFE)}`)]) {
    expect(shown).not.toMatch(ACTIVE);
    expect(shown).toMatch(/a.*b.*c.*d/s);
  }
});

test('long text is shortened, and says how much is left out', () => {
  expect(line('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`);
  expect(render(html`${block('x'.repeat(1_001))}`)).toContain('The first 1000 of 1001 characters.');
  expect(render(html`${block('x'.repeat(1_000))}`)).not.toContain('characters');
});
