import type { VNode } from 'preact';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import type { Known } from '../figures/known.ts';
import { html } from './html.ts';

/** To the second, as tables show it; exact where the pointer rests. */
export function time(ms: number | null | undefined): VNode | string {
  if (ms === null || ms === undefined) return '–';
  const exact = formatDateTime(ms);
  return html`<time datetime=${exact} title=${exact}>${exact.slice(0, 19).replace('T', ' ')}Z</time>`;
}

/** To the millisecond, for what happens within seconds. */
export function exactTime(ms: number): VNode {
  const exact = formatDateTime(ms);
  return html`<time datetime=${exact}>${exact.replace('T', ' ')}</time>`;
}

const DAY = 86_400;

/** `45 s`, `12 min`, `3 h 5 min`, `2 days`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
  return `${Math.floor(whole / DAY)} days`;
}

/** A number with its thousands apart; one that was counted up to a limit says so. */
export function count(value: number, upTo = Infinity): string {
  return `${value.toLocaleString('en-US')}${value >= upTo ? ' or more' : ''}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString('en-US')} ${value === 1 ? one : many}`;
}

export type Tone = 'good' | 'bad' | 'warn' | 'quiet';

/** A state in a word; its colour says nothing that the word does not. */
export function badge(text: string, tone: Tone): VNode {
  return html`<span class=${`badge ${tone}`}>${text}</span>`;
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  active: 'good',
  on: 'good',
  failed: 'bad',
  disabled: 'bad',
  failing: 'warn',
  held: 'warn',
  off: 'quiet',
  withdrawn: 'quiet',
};

export function state(name: string): VNode {
  return badge(name, STATE_TONES[name] ?? 'quiet');
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

export const links = {
  account: (id: number): VNode => html`<a href=${`/accounts/${id}`}>${id}</a>`,
  key: (prefix: string): VNode =>
    html`<a href=${`/keys/${encodeURIComponent(prefix.toWellFormed())}`}><code>${prefix}</code></a>`,
  webhook: (prefix: string): VNode =>
    html`<a href=${`/webhooks/${encodeURIComponent(prefix.toWellFormed())}`}><code>${prefix}</code></a>`,
  delivery: (id: string): VNode =>
    html`<a href=${`/deliveries/${encodeURIComponent(id.toWellFormed())}`}><code>${id.slice(0, 8)}…</code></a>`,
  transaction: (id: number): VNode => html`<a href=${`/transactions/${id}`}>${id}</a>`,
};
