import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium, { inflate } from '@sparticuz/chromium';
import { type Browser, chromium as driver } from 'playwright-core';

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];

/**
 * Starts the Chromium from npm. If the machine lacks some of its libraries, those that come with it are used. Throws if
 * it does not start.
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
