import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startBrowser } from '../../support/browser.ts';

/** Writes the picture of the README: the overview of the demo, after it has pushed. */
const PICTURE = join(import.meta.dirname, '../../../docs/console.png');
const SIZE = { width: 1180, height: 760 };
/** Until there is something on the charts. */
const SHOWN_AFTER_MS = 45_000;

const demo = spawn(process.execPath, ['tools/demo/demo.ts'], { stdio: ['ignore', 'pipe', 'inherit'] });
try {
  const url = await consoleOf(demo.stdout);
  await sleep(SHOWN_AFTER_MS);
  const browser = await startBrowser();
  const page = await browser.newPage({ viewport: SIZE });
  await page.goto(url);
  await page.screenshot({ path: PICTURE });
  await browser.close();
} finally {
  demo.kill('SIGINT');
  await once(demo, 'exit');
}

/** The address that the demo prints last. */
async function consoleOf(output: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const part of output) {
    text += String(part);
    const [, url] = /operator's console: (\S+)/.exec(text) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error(`the demo ended:\n${text}`);
}
