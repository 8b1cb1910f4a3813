// Refreshes <main> of the page that is open while somebody looks at it. Without it every page works, and stands still.

const REFRESH_MS = 2_000;
const MAX_WAIT_MS = 10_000;
const PAUSED = 'fuel-console-paused';

// The one place that makes markup of text: an answer of this server, in which everything is escaped.
const policy = globalThis.trustedTypes?.createPolicy('fuel-console', { createHTML: (text) => text }) ?? {
  createHTML: (text) => text,
};

const pause = document.getElementById('pause');
const asOf = document.getElementById('as-of');
const live = document.getElementById('live');
let etag;
let isAsking = false;

function isPaused() {
  return localStorage.getItem(PAUSED) === 'yes';
}

function showState(text, isStale = false) {
  live.textContent = text;
  document.documentElement.classList.toggle('stale', isStale);
}

function showPaused() {
  pause.setAttribute('aria-pressed', String(isPaused()));
  showState(isPaused() ? 'paused' : 'live');
}

/** Replacing text would end its selection. */
function isSelecting() {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.toString() !== '';
}

const KEEPING = {
  morphStyle: 'outerHTML',
  restoreFocus: true,
  callbacks: {
    // A form that is being filled in and details that the reader opened stay as they are.
    beforeNodeMorphed: (present) => present.nodeName !== 'FORM',
    beforeAttributeUpdated: (name, element) => !(name === 'open' && element.nodeName === 'DETAILS'),
  },
};

async function refresh() {
  if (isAsking || isPaused() || document.visibilityState !== 'visible') return;
  if (isSelecting()) return showState('held while text is selected');
  isAsking = true;
  try {
    const headers = etag === undefined ? {} : { 'If-None-Match': etag };
    const answer = await fetch(location.href, { headers, signal: AbortSignal.timeout(MAX_WAIT_MS) });
    if (answer.status !== 304) {
      const text = await answer.text();
      const next = new DOMParser().parseFromString(policy.createHTML(text), 'text/html');
      const main = next.getElementById('main');
      if (main === null || isPaused() || isSelecting()) return;
      globalThis.Idiomorph.morph(document.getElementById('main'), main, KEEPING);
      document.title = next.title;
      etag = answer.headers.get('ETag') ?? undefined;
    }
    const at = answer.headers.get('X-As-Of');
    if (at !== null) {
      asOf.dateTime = at;
      asOf.textContent = `${at.slice(0, 19).replace('T', ' ')}Z`;
    }
    showState('live');
  } catch {
    showState('no answer', true);
  } finally {
    isAsking = false;
  }
}

async function copy(button) {
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'copied';
    setTimeout(() => {
      button.textContent = 'copy';
    }, 1_500);
  } catch {
    document.getSelection().selectAllChildren(code); // the clipboard needs HTTPS or this machine
  }
}

document.documentElement.classList.add('scripted');
showPaused();
pause.addEventListener('click', () => {
  localStorage.setItem(PAUSED, isPaused() ? 'no' : 'yes');
  showPaused();
  void refresh();
});
addEventListener('storage', showPaused);
document.addEventListener('visibilitychange', () => void refresh());
document.addEventListener('click', (event) => {
  if (event.target instanceof Element && event.target.matches('button.copy')) void copy(event.target);
});
setInterval(() => void refresh(), REFRESH_MS);
