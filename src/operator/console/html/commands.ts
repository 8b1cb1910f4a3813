import type { VNode } from 'preact';
import { html } from './html.ts';

/** Quotes a command for sh, bash and zsh: each word is one argument whatever it contains, also when it is pasted. */
export function commandLine(words: readonly string[]): string {
  return words.map(quoted).join(' ');
}

const PLAIN = /^[A-Za-z0-9_@+:,./-]+$/;
/** Characters that a terminal acts on while they are pasted, or does not show. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function quoted(word: string): string {
  if (PLAIN.test(word)) return word;
  if (!UNSEEN.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  // All three shells read this form. Only line feeds at the end are lost.
  return `"$(printf '${word.replace(/[^A-Za-z0-9 ]/gu, octalsOf)}')"`;
}

function octalsOf(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}

/** A command: its purpose, and its words after `fuel`. */
export type Command = readonly [what: string, words: readonly string[]];

/** The template is the command after `fuel`. Each value in it is one word, or a list of words. */
export function cmd(what: string) {
  return (
    literals: TemplateStringsArray,
    ...values: readonly (string | number | readonly string[])[]
  ): Command => {
    const words = literals.flatMap((text, at) => [
      ...text.split(' ').filter((word) => word !== ''),
      ...[values[at] ?? []].flat().map(String),
    ]);
    return [what, words];
  };
}

/** Lists commands to copy, because a page changes nothing itself. */
export function commands(list: readonly Command[]): VNode {
  return html`<section class="commands" aria-label="Commands">
    <h2>Commands</h2>
    <dl>
      ${list.map(([what, words]) => html`<div><dt>${what}</dt><dd>${copied(words)}</dd></div>`)}
    </dl>
  </section>`;
}

export function copied(words: readonly string[]): VNode {
  const text = commandLine(['fuel', ...words]);
  return html`<span class="copied"><code class="command">${text}</code><button type="button" class="copy" aria-label=${`Copy: ${text}`}>copy</button></span>`;
}
