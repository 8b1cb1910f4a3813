import { GetObjectCommand, type HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/engines/engines.ts';
import { configuredPresigner, createPresigner } from '../../src/records/presign.ts';

const store = {
  region: 'eu-central-1',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const issuedAtMs = Date.parse('2026-09-03T08:15:30.987Z');

/** Returns the AWS SDK's URL for the same terms, without the parameters that only the SDK adds. */
function sdkUrl(
  endpoint: string,
  key: string,
  signedAtMs = issuedAtMs,
  Command: typeof GetObjectCommand | typeof HeadObjectCommand = GetObjectCommand,
): Promise<string> {
  const client = new S3Client({
    endpoint,
    region: store.region,
    credentials: store,
    forcePathStyle: true,
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  client.middlewareStack.add(
    (next) => (args) => {
      delete (args.request as { query: Record<string, string> }).query['x-id'];
      return next(args);
    },
    { step: 'build' },
  );
  const payload = new Set(['x-amz-content-sha256']);
  return getSignedUrl(client, new Command({ Bucket: 'fuel-photos', Key: key }), {
    expiresIn: 3600,
    signingDate: new Date(signedAtMs),
    unhoistableHeaders: payload,
    unsignableHeaders: payload,
  });
}

function sorted(url: string): { path: string; query: string[] } {
  const mark = url.indexOf('?');
  return {
    path: url.slice(0, mark),
    query: url
      .slice(mark + 1)
      .split('&')
      .toSorted(),
  };
}

describe('a presigned URL', () => {
  test('is the same whichever keys, times and validities came before', () => {
    const issue = fc.record({
      key: fc.string({ unit: 'grapheme', maxLength: 200 }),
      atMs: fc.integer({ min: 0, max: 3_000 }).map((ms) => issuedAtMs + ms),
      validForSeconds: fc.constantFrom(60, 3_600),
    });
    const options = { ...store, endpoint: 'https://photos.example.com', bucket: 'b' };
    fc.assert(
      fc.property(fc.array(issue, { maxLength: 100 }), (issues) => {
        const used = createPresigner(options);
        for (const { key, atMs, validForSeconds } of issues) {
          const expected = createPresigner(options).at(atMs, validForSeconds);
          const issued = used.at(atMs, validForSeconds);
          expect([issued.presign(key), issued.expiresAtMs]).toEqual([
            expected.presign(key),
            expected.expiresAtMs,
          ]);
        }
      }),
      { numRuns: 30 },
    );
  });

  test.each([
    'photos/501/pump.jpg',
    'photos/a b+c&d=e?f#g%h/pump.jpg',
    'photos/!\'()*~-_.,;:@$[]{}|\\^`"<>/1.jpg',
    'фото/насос.jpg',
    'صور/مضخة.jpg',
    '照片/泵 😀.jpg',
    'चित्र/पंप.jpg',
    'φωτό/αντλία.jpg',
  ])('equals the AWS SDK’s for the key %s', async (key) => {
    for (const endpoint of [
      'https://photos.example.com',
      'http://127.0.0.1:9000',
      'https://s3.example:8443/store',
    ]) {
      const presigner = createPresigner({ ...store, endpoint, bucket: 'fuel-photos' });
      const url = presigner.at(issuedAtMs, 3600).presign(key);
      expect(sorted(url)).toEqual(sorted(await sdkUrl(endpoint, key)));
    }
  });

  test('expires a whole number of seconds after its issue, which is cut to whole seconds', () => {
    const presigner = createPresigner({ ...store, endpoint: 'https://photos.example.com', bucket: 'b' });
    const issued = presigner.at(issuedAtMs, 3600);
    expect(issued.expiresAtMs).toBe(Date.parse('2026-09-03T09:15:30.000Z'));
    expect(issued.presign('k')).toContain('&X-Amz-Date=20260903T081530Z&X-Amz-Expires=3600&');
  });

  test('is signed with the key of its own day, before and after midnight', async () => {
    const endpoint = 'https://photos.example.com';
    const presigner = createPresigner({ ...store, endpoint, bucket: 'fuel-photos' });
    const midnightMs = Date.parse('2026-09-04T00:00:00.000Z');
    for (const atMs of [midnightMs - 1, midnightMs, midnightMs - 1]) {
      const url = presigner.at(atMs, 3600).presign('photos/501/pump.jpg');
      expect(sorted(url)).toEqual(sorted(await sdkUrl(endpoint, 'photos/501/pump.jpg', atMs)));
    }
  });

  test('has the endpoint’s path, with or without a slash at its end, and the escaped bucket', () => {
    for (const endpoint of ['https://s3.example/store', 'https://s3.example/store/']) {
      const presigner = createPresigner({ ...store, endpoint, bucket: 'fuel photos' });
      const [address] = presigner.at(issuedAtMs, 60).presign('k').split('?');
      expect(address).toBe('https://s3.example/store/fuel%20photos/k');
    }
  });

  test('is a URL that needs no escaping in JSON, whatever the key', () => {
    const { presign } = createPresigner({ ...store, endpoint: 'https://photos.example.com', bucket: 'b' }).at(
      0,
      60,
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (key) => {
        const url = presign(key);
        expect(url).toMatch(/^[A-Za-z0-9\-_.~/:?&=%]+$/);
        expect(JSON.parse(`"${url}"`)).toBe(url);
      }),
    );
  });

  test('of a key with a lone surrogate is valid too', () => {
    const { presign } = createPresigner({ ...store, endpoint: 'https://photos.example.com', bucket: 'b' }).at(
      0,
      60,
    );
    expect(presign('a\ud800b')).toContain('/b/a%EF%BF%BDb?');
  });
});

test('photos are presigned for the store that the settings name, with its keys', () => {
  const config = loadConfig(
    {
      FUEL_IMAGES_ENDPOINT: 'https://s3.example.net:9000',
      FUEL_IMAGES_REGION: 'eu-central-1',
      FUEL_IMAGES_BUCKET: 'pictures',
      FUEL_IMAGES_ACCESS_KEY_ID: 'AKIATEST',
      FUEL_IMAGES_SECRET_ACCESS_KEY: 'the secret of the test',
    },
    'command',
  );
  const expected = createPresigner({
    endpoint: 'https://s3.example.net:9000',
    region: 'eu-central-1',
    bucket: 'pictures',
    accessKeyId: 'AKIATEST',
    secretAccessKey: 'the secret of the test',
  });
  const atMs = Date.parse('2026-09-03T08:15:30.987Z');
  expect(configuredPresigner(config).at(atMs, 60).presign('k')).toBe(expected.at(atMs, 60).presign('k'));
});
