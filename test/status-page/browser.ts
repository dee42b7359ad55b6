import { type Browser, chromium as driver, type Page } from 'playwright-core';

import { chromium } from '../../hack/chromium/chromium.ts';

/** Chromium, without a window. Throws NoChromiumError where there is none. */
export async function openBrowser(): Promise<Browser> {
  const { program, env } = await chromium(() => undefined);
  return await driver.launch({
    executablePath: program,
    // Without a sandbox it runs in containers, and as root; it opens only pages of these tests.
    args: ['--no-sandbox', '--disable-gpu'],
    env: { ...process.env, ...env },
  });
}

/** How a window is. */
export interface WindowOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

/** A window with what has gone wrong in it. */
export interface TestWindow {
  readonly tab: Page;
  /** Messages of scripts, of refused loads, and dialogs. */
  readonly complaints: string[];
  /** All that was asked for. */
  readonly requests: string[];
}

/** Opens a page in a window of its own; resolves when it shows what it was sent. */
export async function openWindow(browser: Browser, url: string, options: WindowOptions = {}): Promise<TestWindow> {
  const { width = 1440, height = 900, colorScheme = 'light' } = options;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, timezoneId: 'UTC' });
  const tab = await context.newPage();
  const complaints: string[] = [];
  const requests: string[] = [];
  tab.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  tab.on('pageerror', (err) => complaints.push(`error: ${err.message}`));
  tab.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  tab.on('request', (request) => requests.push(request.url()));
  await tab.goto(url);
  await tab.locator('#connection', { hasText: 'Live' }).waitFor();
  return { tab, complaints, requests };
}
