import { type Command, commands } from './commands.ts';
import { html, line } from './html.ts';
import type { Page } from './layout.ts';

/** A page that says that something does not exist, and what to do. */
export function notFound(what: string, why: string, list: readonly Command[] = []): Page {
  return {
    title: `${what}: not found`,
    outcome: 'not found',
    main: html`<h1>${line(what)}</h1>
      <section class="problem"><p>${why}</p></section>
      ${list.length === 0 ? null : commands(list)}`,
  };
}

export function malformed(what: string, faults: readonly string[]): Page {
  return {
    title: what,
    outcome: 'malformed',
    main: html`<h1>${what}</h1>
      <section class="problem"><ul>${faults.map((fault) => html`<li>${line(fault)}</li>`)}</ul></section>`,
  };
}

export function unavailable(reason: string): Page {
  return {
    title: 'Not available',
    outcome: 'unavailable',
    main: html`<h1>Not available now</h1>
      <section class="problem">
        <p>${line(reason)}</p>
        <p>The <a href="/">overview</a> says what else is known. This page tries again.</p>
      </section>`,
  };
}

/** Before the stores can be reached. */
export function starting(checks: Readonly<Record<string, boolean>>): Page {
  return {
    title: 'Starting',
    outcome: 'unavailable',
    main: html`<h1>The service is starting</h1>
      <section class="problem">
        <p>It waits for what does not hold yet:</p>
        <ul>${Object.entries(checks).map(([name, holds]) => html`<li><code>${name}</code>: ${holds ? 'yes' : 'not yet'}</li>`)}</ul>
      </section>`,
  };
}
