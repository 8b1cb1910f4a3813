import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium, { inflate } from '@sparticuz/chromium';
import { type Browser, chromium as driver } from 'playwright-core';

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];

/**
 * Starts the Chromium that npm brings. Where the machine lacks a library of it, with those that come with it too. Throws
 * where it does not start.
 */
export async function startBrowser(): Promise<Browser> {
  const executablePath = await chromium.executablePath();
  try {
    return await driver.launch({ executablePath, args: ARGS });
  } catch {
    const archive = join(import.meta.dirname, '../../node_modules/@sparticuz/chromium/bin/al2023.tar.br');
    await inflate(archive);
    const env = { ...process.env, LD_LIBRARY_PATH: join(tmpdir(), 'al2023', 'lib') } as Record<
      string,
      string
    >;
    return await driver.launch({ executablePath, args: ARGS, env });
  }
}
