import { formatDateTime } from '../../../domain/values/date-time.ts';
import type { ConsoleParts } from '../figures/console-parts.ts';
import type { Figures } from '../figures/figures.ts';
import { type Command, commands } from './commands.ts';
import { html, line, render } from './html.ts';
import { type Part, problem, type Shown, section, show } from './parts.ts';

/** Everything that a page is made from. */
export interface PageContext {
  readonly parts: ConsoleParts;
  readonly figures: Figures;
  /** The parameters of the query, as they came. */
  readonly query: Readonly<Record<string, string>>;
  /** The last part of the path: the name of the thing that a page is about. */
  readonly name: string;
}

export interface Page {
  /** The title of the document; the name of the console is added. */
  readonly title: string;
  /** The title unless given. */
  readonly heading?: Shown;
  readonly parts: readonly Part[];
  readonly commands?: readonly Command[];
  /** Says if the thing exists and can be read; `ok` unless given. */
  readonly outcome?: 'ok' | 'notFound' | 'malformed' | 'unavailable';
}

/** Renders the part of a page that the browser refreshes. */
export function renderMain({ title, heading = title, parts, commands: list = [] }: Page): string {
  return render(
    html`<main id="main" tabindex="-1"><h1>${show(heading)}</h1>${parts.map(section)}${list.length === 0 ? null : commands(list)}</main>`,
  );
}

/** The frame around a page. */
interface Frame {
  readonly path: string;
  readonly environment: string;
  readonly asOfMs: number;
  readonly sections: readonly { readonly path: string; readonly name: string }[];
}

/** Renders the whole document around what `renderMain` made. */
export function document(
  main: string,
  { title }: Page,
  { path, environment, asOfMs, sections }: Frame,
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
    <a class="skip" href="#main">Skip to the content</a>
    <strong class="brand">fuel console</strong>
    <span class=${`environment ${environment}`}>${environment}</span>
    <nav aria-label="Pages">
      ${sections.map(
        ({ path: to, name }) =>
          html`<a href=${to} aria-current=${isWithin(path, to) ? 'page' : undefined}>${name}</a>`,
      )}
    </nav>
    <form action="/find" method="get" role="search">
      <input name="q" aria-label="Find an account, key, delivery or transaction" placeholder="Find: id, key, name" autocomplete="off" />
    </form>
    <span class="as-of">as of <time id="as-of" datetime=${at}>${at.slice(0, 19).replace('T', ' ')}Z</time> <span id="live"></span></span>
    <button type="button" id="pause" aria-pressed="false">Pause</button>
  </header>`);
  return `<!doctype html>\n<html lang="en">${head}<body>${top}${main}</body></html>\n`;
}

function isWithin(path: string, section: string): boolean {
  const [, first = ''] = path.split('/');
  return section === `/${first === 'keys' ? 'accounts' : first}`;
}

/** A page that says that something does not exist, and what to do. `above` is a form for another try. */
export function notFound(
  what: string,
  why: string,
  { commands = [], above = null }: { readonly commands?: readonly Command[]; readonly above?: Part } = {},
): Page {
  const parts = [above, problem(html`<p>${show(why)}</p>`)];
  return { title: `${what}: not found`, heading: what, outcome: 'notFound', parts, commands };
}

export function malformed(what: string, faults: readonly string[], above: Part = null): Page {
  const list = html`<ul>${faults.map((fault) => html`<li>${line(fault)}</li>`)}</ul>`;
  return { title: what, outcome: 'malformed', parts: [above, problem(list)] };
}

export function unavailable(reason: string): Page {
  const next = html`<p>The <a href="/">overview</a> shows what else is known. This page keeps trying.</p>`;
  const parts = [problem(html`<p>${line(reason)}</p>${next}`)];
  return { title: 'Not available', heading: 'Not available now', outcome: 'unavailable', parts };
}

/** The page before the stores can be reached. */
export function starting(checks: Readonly<Record<string, boolean>>): Page {
  const list = Object.entries(checks).map(
    ([name, holds]) => html`<li><code>${name}</code>: ${holds ? 'yes' : 'not yet'}</li>`,
  );
  const parts = [problem(html`<p>It is waiting for these conditions:</p><ul>${list}</ul>`)];
  return { title: 'Starting', heading: 'The service is starting', outcome: 'unavailable', parts };
}
