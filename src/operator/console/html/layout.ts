import type { VNode } from 'preact';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import type { ConsoleParts } from '../figures/parts.ts';
import type { Snapshots } from '../figures/snapshot.ts';
import { html, line, render } from './html.ts';

/** What a page is made from. */
export interface PageContext {
  readonly parts: ConsoleParts;
  readonly snapshots: Snapshots;
  /** The parameters of the query, each once, as they came. */
  readonly query: Readonly<Record<string, string>>;
  /** The last part of the path, for a page about one thing. */
  readonly name: string;
}

export interface Page {
  /** The document's title, before the name of the console. */
  readonly title: string;
  readonly main: VNode;
  /** Whether what was asked for exists and can be read; `ok` unless given. */
  readonly outcome?: 'ok' | 'not found' | 'malformed' | 'unavailable';
}

const SECTIONS = [
  { path: '/', name: 'Overview' },
  { path: '/webhooks', name: 'Webhooks' },
  { path: '/deliveries', name: 'Deliveries' },
  { path: '/transactions', name: 'Transaction' },
  { path: '/accounts', name: 'Accounts' },
  { path: '/projections', name: 'Projections' },
] as const;

/** What the browser refreshes of a page. */
export function renderMain({ main }: Page): string {
  return render(html`<main id="main" tabindex="-1">${main}</main>`);
}

/** The whole document around what `renderMain` made. */
export function document(
  { title }: Page,
  {
    main,
    path,
    environment,
    asOfMs,
  }: { readonly main: string; readonly path: string; readonly environment: string; readonly asOfMs: number },
): string {
  const at = formatDateTime(asOfMs);
  const head = render(html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${line(title)} · fuel console</title>
    <link rel="stylesheet" href="/console/console.css" />
    <script src="/console/idiomorph.js" defer></script>
    <script src="/console/console.js" defer></script>
  </head>`);
  const top = render(html`<header>
    <a class="skip" href="#main">To the page</a>
    <strong class="brand">fuel console</strong>
    <span class=${`environment ${environment}`}>${environment}</span>
    <nav aria-label="Pages">
      ${SECTIONS.map(
        ({ path: to, name }) =>
          html`<a href=${to} aria-current=${isWithin(path, to) ? 'page' : undefined}>${name}</a>`,
      )}
    </nav>
    <form action="/find" method="get" role="search">
      <input name="q" aria-label="Find an account, key, delivery or transaction" placeholder="Find: id, key, name" autocomplete="off" />
    </form>
    <span class="as-of">as of <time id="as-of" datetime=${at}>${at.slice(11, 19)}Z</time> <span id="live"></span></span>
    <button type="button" id="pause" aria-pressed="false">Pause</button>
  </header>`);
  return `<!doctype html>\n<html lang="en">${head}<body>${top}${main}</body></html>\n`;
}

function isWithin(path: string, section: string): boolean {
  const [, first = ''] = path.split('/');
  return section === `/${first === 'keys' ? 'accounts' : first}`;
}
