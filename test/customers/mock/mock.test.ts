import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/base/listen.ts';
import { startMock } from '../../../src/customers/mock/mock.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** Folders for temporary files are made here. */
function ownFolder(): string {
  const { TMPDIR } = process.env;
  const folder = temporaryFolder();
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  return folder;
}

test.each([0, 1])(
  'a mock whose port (%d after the one named) is taken leaves nothing behind',
  async (after) => {
    const folder = ownFolder();
    const port = await lastingPort();
    const taken = createServer();
    onTestFinished(() => void taken.close());
    await listen(taken, { host: '127.0.0.1', port: port + after });
    await expect(startMock({ seed: 1, port })).rejects.toMatchObject({ code: 'REFUSED' });
    expect(readdirSync(folder)).toEqual([]);
    const other = createServer();
    onTestFinished(() => void other.close());
    await listen(other, { host: '127.0.0.1', port: port + 1 - after }); // the listener that could start has ended
  },
);
