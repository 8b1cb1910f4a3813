import type { VNode } from 'preact';
import * as answers from '../../answers/columns.ts';
import type { Known } from '../figures/known.ts';
import { html, line } from './html.ts';

const MAX_TEXT = 1_000;

/** A value of an answer: text, a time, a badge or a link. */
export function shown(cell: answers.Cell): VNode | string | number {
  if (typeof cell === 'number') return cell;
  if (typeof cell === 'string') return line(cell, MAX_TEXT);
  if ('state' in cell) return badge(cell.state, cell.tone);
  if ('noun' in cell) return linkTo(cell);
  if (!('time' in cell)) return html`${cell.map((part) => html`${shown(part)} `)}`;
  const iso = cell.time;
  if (cell.exact) return html`<time datetime=${iso}>${iso.replace('T', ' ')}</time>`;
  return html`<time datetime=${iso} title=${iso}>${iso.slice(0, 19).replace('T', ' ')}Z</time>`;
}

const PATHS = {
  account: '/accounts',
  key: '/keys',
  webhook: '/webhooks',
  delivery: '/deliveries',
  transaction: '/transactions',
} as const satisfies Record<answers.Noun, string>;

function linkTo({ noun, id, text }: answers.Link): VNode {
  const href = `${PATHS[noun]}/${encodeURIComponent(String(id).toWellFormed())}`;
  const name = noun === 'delivery' ? `${text.slice(0, 8)}…` : line(text);
  return html`<a href=${href}>${typeof id === 'number' ? name : html`<code>${name}</code>`}</a>`;
}

/** To the second, as tables show it; exact where the pointer rests. */
export function time(at: Parameters<typeof answers.time>[0]): ReturnType<typeof shown> {
  return shown(answers.time(at));
}

/** A number with its thousands apart; one that was counted up to a limit says so. */
export function count(value: number, upTo = Infinity): string {
  return `${value.toLocaleString('en-US')}${value >= upTo ? ' or more' : ''}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString('en-US')} ${value === 1 ? one : many}`;
}

/** A state in a word; its colour says nothing that the word does not. */
export function badge(text: string, tone: answers.Tone): VNode {
  return html`<span class=${`badge ${tone}`}>${text}</span>`;
}

export function state(name: string): ReturnType<typeof shown> {
  return shown(answers.state(name));
}

const NEW_MS = 4_000;

/** For figures that were read some time before the page was made. */
export function asOf(found: Known<unknown>, pageAtMs: number): VNode | null {
  if ('unknown' in found || pageAtMs - found.atMs < NEW_MS) return null;
  return html`<p class="note">As of ${time(found.atMs)}.</p>`;
}

/** What is known of something, or that it is not and why: never 0 in its place. */
export function orUnknown<T>(found: Known<T>, show: (value: T, atMs: number) => unknown): unknown {
  return 'unknown' in found ? unknown(found.unknown) : show(found.value, found.atMs);
}

export function unknown(reason: string): VNode {
  return html`<span class="unknown" title=${reason}>unknown</span>`;
}

export function link(noun: answers.Noun, id: string | number): VNode {
  return linkTo(answers.link(noun, id));
}
