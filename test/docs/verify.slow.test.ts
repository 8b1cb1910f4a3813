import { describe, expect, it } from 'vitest';
import { signature } from '../../src/push/message/envelope.ts';
import { isGenuine } from '../support/deliveries/is-genuine.ts';
import { readDocument } from '../support/documents.ts';
import { installed, JUDGED, judgement, VECTOR, VERIFIERS, VERIFY } from '../support/verifiers.ts';

const QUICK = installed(['verify.ts', 'verify.py']);
const README = readDocument(`${VERIFY}/README.md`);
/** How each language compares in constant time, and what else its file must contain. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  'verify.ts': ['timingSafeEqual('],
  'verify.py': ['hmac.compare_digest('],
  'Verify.java': ['MessageDigest.isEqual(', 'HmacSHA256'],
  'Verify.cs': ['CryptographicOperations.FixedTimeEquals(', 'HMACSHA256'],
  'verify.php': ['hash_equals(', "hash_hmac('sha256'", 'php://input'],
  'verify.go': ['hmac.Equal(', 'hmac.New(sha256.New'],
};

describe('the published vector', () => {
  it('is what the service signs, and what it finds genuine', () => {
    const { secret, body, header, now } = VECTOR;
    expect(signature({ secret, body, atMs: now * 1000 })).toBe(header);
    expect(isGenuine({ header, secret, body: Buffer.from(body), nowMs: now * 1000 })).toBe(true);
  });

  it('is the one that the guide and docs/openapi.yaml print', () => {
    const [t = '', v1 = ''] = VECTOR.header.split(',').map((part) => part.replace(/^\w+=/, ''));
    for (const text of [README, readDocument('docs/openapi.yaml')]) {
      for (const part of [VECTOR.secret, VECTOR.body, t, v1]) expect(text).toContain(part);
    }
  });
});

describe('the verification in each language', () => {
  it('is linked by the guide, has its tolerance and its form of the header, and compares in constant time', () => {
    for (const [file, parts] of Object.entries(PARTS)) {
      expect(README).toContain(`](${file})`);
      const text = readDocument(`${VERIFY}/${file}`);
      for (const part of [...parts, '300']) expect(text, file).toContain(part);
      expect(text, file).toMatch(/t=\((\[0-9\]|\\d)\{1,12\}\),v1=\(\[0-9a-f\]\{64\}\)/);
    }
    expect(Object.keys(PARTS)).toEqual(Object.keys(VERIFIERS));
  });

  // The others take seconds to compile: test/e2e-long/verify.test.ts.
  describe.each(QUICK)('%s', (file) => {
    it.each(JUDGED)('judges %s', (_, request, expected) => {
      expect(judgement(file, request)).toBe(expected);
    });
  });
});
