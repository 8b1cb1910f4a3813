import { describe, expect, it } from 'vitest';
import { installed, JUDGED, judgement } from '../support/verifiers.ts';

const files = installed(['verify.ts', 'Verify.java', 'Verify.cs', 'verify.php', 'verify.go']);

describe.each(files)('docs/guide/verify/%s', (file) => {
  it('judges each request as the service does', () => {
    const judged = JUDGED.map(([what, request]) => [what, judgement(file, request)]);
    expect(judged).toEqual(JUDGED.map(([what, , expected]) => [what, expected]));
  });
});
