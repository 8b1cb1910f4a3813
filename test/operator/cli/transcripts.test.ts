import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { runTranscript } from '../../support/transcripts/run-transcript.ts';

const FOLDER = join(import.meta.dirname, 'transcripts');
const FIXTURES = join(FOLDER, 'fixtures');

/** `vitest -u` writes what the commands print into the transcripts: read the difference before you keep it. */
test.each(
  globSync(join(FOLDER, '*', '*.txt'))
    .sort()
    .map((path) => [relative(FOLDER, path), path]),
)('the commands of %s print what their transcript shows', async (_, path) => {
  await expect(await runTranscript(path, FIXTURES)).toMatchFileSnapshot(path);
});
