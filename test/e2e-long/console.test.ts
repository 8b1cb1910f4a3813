import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { type ConsoleScenario, DRIVER, HOSTILE, makeTroubles } from '../support/ops/console-scenario.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** A folder for pictures of the pages, for people who want to look at them. */
const PICTURES = process.env.FUEL_TEST_PICTURES;
const PHONE = 390;

const browser = await startBrowser().catch((error: unknown) => {
  if (process.env.FUEL_TEST_REQUIRE_BROWSER === 'true') throw error;
  console.log(
    `the console is not tested in a browser, which does not start here: ${String(error).split('\n')[0]}`,
  );
  return undefined;
});

describe.runIf(browser !== undefined)('the console in a browser', () => {
  let push: PushService;
  let made: ConsoleScenario;

  beforeAll(async () => {
    push = await PushService.start();
    made = await makeTroubles(push);
  });
  afterAll(() => browser?.close());

  /** Returns one page of each kind, with long content. */
  const kinds = (): readonly string[] => [
    '/',
    '/webhooks',
    `/keys/${made.failing}`,
    `/keys/${made.disabled}`,
    '/deliveries?state=failed&account=8',
    '/deliveries?state=nonsense',
    `/deliveries/${made.failedDelivery}`,
    `/transactions/${made.transactions.failed}`,
    `/transactions/${made.transactions.missing}`,
    '/accounts',
    '/accounts/8',
    '/projections',
  ];
  const paths = (): readonly string[] => [
    '/',
    '/webhooks',
    `/keys/${made.healthy}`,
    `/keys/${made.failing}`,
    `/keys/${made.disabled}`,
    `/keys/${made.held}`,
    '/deliveries',
    '/deliveries?state=failed&account=8',
    '/deliveries?state=nonsense',
    `/deliveries/${made.failedDelivery}`,
    '/transactions',
    ...Object.values(made.transactions).map((id) => `/transactions/${id}`),
    '/accounts',
    '/accounts?q=customer',
    ...[7, 8, 9, 10].map((id) => `/accounts/${id}`),
    '/projections',
    `/find?q=${encodeURIComponent(HOSTILE)}`,
    `/keys/${encodeURIComponent(HOSTILE)}`,
    `/nowhere/${encodeURIComponent(HOSTILE)}`,
  ];

  async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await (browser as Browser).newContext({
      viewport: { width: 1360, height: 900 },
      ...options,
    });
    onTestFinished(() => context.close());
    return await context.newPage();
  }
  /** Refreshes the page, as it does itself every two seconds. */
  const refresh = (page: Page): Promise<unknown> =>
    page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  const at = (path: string): string => `${push.service.opsUrl}${path}`;

  test('nothing that is stored runs on any page, and no page names the driver', async () => {
    const page = await open();
    const said: string[] = [];
    page.on('console', (message) => {
      if (!/status of 40[04]/.test(message.text())) said.push(message.text());
    });
    page.on('pageerror', (error) => said.push(String(error)));
    page.on('dialog', (dialog) => said.push(dialog.message()));
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    for (const path of paths()) {
      await page.goto(at(path));
      const found = await page.evaluate(() => ({
        hacked: 'hacked' in globalThis,
        elements: document.querySelectorAll(
          'body script, img, iframe, object, embed, [onerror], [onload], svg[onload], a[href^="javascript" i]',
        ).length,
        mains: document.querySelectorAll('main').length,
        html: document.documentElement.outerHTML,
      }));
      expect({ path, ...found, html: '' }).toEqual({ path, hacked: false, elements: 0, mains: 1, html: '' });
      expect(found.html).not.toContain(DRIVER.name);
      expect(found.html).not.toContain(DRIVER.mobile_number);
      expect((await page.title()) + (await page.innerText('body'))).not.toContain('\u202e');
    }
    await page.goto(at(`/deliveries/${made.failedDelivery}`));
    const answered = await page.locator('details[open] pre').allTextContents();
    expect(answered.join()).toContain('<script>window.hacked=1</script>');
    expect(said).toEqual([]);
    expect(asked.filter((url) => !url.startsWith(push.service.opsUrl))).toEqual([]);
  });

  test('every page is accessible, dark and light', async () => {
    const page = await open();
    for (const [index, path] of kinds().entries()) {
      await page.goto(at(path));
      await page.evaluate(() => {
        for (const each of document.querySelectorAll('details')) each.open = true;
      });
      await page.evaluate(AXE);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        // The dark scheme only has different colours.
        const rules = colorScheme === 'light' ? {} : { runOnly: ['color-contrast'] };
        const violations = await page.evaluate(runAxe, rules);
        expect({ path, colorScheme, violations }).toEqual({ path, colorScheme, violations: [] });
        if (PICTURES === undefined) continue;
        mkdirSync(PICTURES, { recursive: true });
        await page.screenshot({ path: join(PICTURES, `${colorScheme}-${index}.png`), fullPage: true });
      }
    }
  });

  test('on a phone every page is as wide as the screen, and a row of a list a few lines', async () => {
    const page = await open({ viewport: { width: PHONE, height: 844 } });
    for (const [index, path] of paths().entries()) {
      await page.goto(at(path));
      await page.evaluate(() => {
        for (const each of document.querySelectorAll('details')) each.open = true;
      });
      const found = await page.evaluate(measurePhone);
      if (PICTURES !== undefined)
        await page.screenshot({ path: join(PICTURES, `phone-${index}.png`), fullPage: true });
      expect.soft({ path, ...found }).toEqual({ path, width: PHONE, cutOff: [], tall: [] });
    }
  });

  test('a page follows what happens, and keeps what is open, typed and focused', async () => {
    const page = await open();
    await page.goto(at('/'));
    await page.evaluate(() => {
      Object.assign(globalThis, { isSamePage: true });
      for (const each of document.querySelectorAll('details')) each.open = true;
    });
    await page.focus('#chart-lag-figures summary');
    await page.fill('header input', 'being typed');
    await page.focus('#chart-lag-figures summary');
    expect(await page.textContent('#attention')).not.toContain(made.healthy);
    const change = { accountId: 7, prefix: made.healthy } as const;
    const evidence = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
    await push.service.operator.change(7, { type: 'DisableWebhook', ...change, reason: 'test', evidence });
    await page.waitForSelector(`#attention-disabled-${made.healthy}`);
    await push.service.operator.change(7, { type: 'EnableWebhook', ...change });
    const kept = await page.evaluate(() => ({
      isSamePage: 'isSamePage' in globalThis,
      open: [...document.querySelectorAll('details')].every((each) => each.open),
      focused: document.activeElement?.parentElement?.id,
      typed: document.querySelector('input')?.value,
    }));
    expect(kept).toEqual({
      isSamePage: true,
      open: true,
      focused: 'chart-lag-figures',
      typed: 'being typed',
    });
  });

  test('an unchanged page is not sent again, and text that is selected stays so', async () => {
    const page = await open();
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/accounts/7')) statuses.push(response.status());
    });
    await page.goto(at('/accounts/7'));
    await refresh(page);
    await expect.poll(() => statuses.length).toBeGreaterThanOrEqual(2);
    await refresh(page);
    await expect.poll(() => statuses.filter((status) => status === 304).length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(2);
    await page.evaluate(() =>
      document.getSelection()?.selectAllChildren(document.querySelector('h1') as Element),
    );
    await page.waitForFunction(() => document.querySelector('#live')?.textContent?.includes('held'));
    expect(await page.evaluate(() => document.getSelection()?.toString())).toContain('Account 7');
  });

  test('a pause survives navigation, and ends when it is told to', async () => {
    const page = await open();
    await page.goto(at('/'));
    await page.click('#pause');
    await page.click('nav a[href="/webhooks"]');
    await expect
      .poll(() => page.getAttribute('#pause', 'aria-pressed')) // the page's script has run
      .toBe('true');
    expect(await page.textContent('#live')).toBe('paused');
    let refreshed = 0;
    page.on('request', () => {
      refreshed += 1;
    });
    await refresh(page);
    await page.waitForTimeout(300);
    expect(refreshed).toBe(0);
    await page.click('#pause');
    await expect.poll(() => refreshed).toBeGreaterThan(0);
  });

  test('without JavaScript every page shows the same, and a filter works', async () => {
    const page = await open({ javaScriptEnabled: false });
    await page.goto(at('/deliveries'));
    await page.selectOption('select[name=state]', 'failed');
    await page.click('.filters button');
    await page.waitForURL((url) => url.searchParams.get('state') === 'failed');
    expect(await page.locator('tbody tr').count()).toBe(3);
    await page.locator('#pause').waitFor({ state: 'hidden' }); // the style sheet, which may still be loading, hides it
  });

  test('a page of another site reads nothing and shows nothing in a frame', async () => {
    const site = createServer(
      (_, response) => void response.setHeader('Content-Type', 'text/html').end('<h1>other</h1>'),
    );
    site.listen(0, '127.0.0.1');
    await once(site, 'listening');
    onTestFinished(() => void site.close());
    const page = await open();
    await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
    const read = await page.evaluate(async (url) => {
      const tried = async (options: RequestInit): Promise<string> => {
        try {
          return (await (await fetch(url, options)).text()).slice(0, 40);
        } catch {
          return 'refused';
        }
      };
      const frame = document.createElement('iframe');
      frame.src = url;
      document.body.append(frame);
      await new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
      return [await tried({}), await tried({ mode: 'no-cors' })];
    }, at('/'));
    expect(read).toEqual(['refused', 'refused']);
    const framed = page.frames().find((frame) => frame !== page.mainFrame());
    expect((await framed?.content()) ?? '').not.toContain('fuel console');
  });
});

/** Runs in the page, and measures how wide it is, what scrolls sideways, and rows of deliveries that are too tall. */
function measurePhone() {
  const all = [...document.querySelectorAll<HTMLElement>('body *')];
  const nameOf = ({ tagName, className, textContent }: HTMLElement): string =>
    `${tagName}.${className} ${textContent?.slice(0, 60)}`;
  return {
    width: document.scrollingElement?.scrollWidth,
    cutOff: all
      .filter((each) => each.clientWidth > 0 && !each.matches('caption, thead, thead *, .skip'))
      .filter(
        (each) =>
          each.getBoundingClientRect().right > innerWidth ||
          (each.matches('.scrolls, pre') && each.scrollWidth > each.clientWidth + 1),
      )
      .map(nameOf),
    tall: all.filter((each) => each.matches('tr[id^="deliveries-"]') && each.offsetHeight > 160).map(nameOf),
  };
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Runs axe in the page. */
async function runAxe(rules: object): Promise<string[]> {
  const { axe } = globalThis as unknown as {
    axe: { run(context: unknown, options: object): Promise<{ violations: readonly Violation[] }> };
  };
  const { violations } = await axe.run(document, { resultTypes: ['violations'], ...rules });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
