import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { configuredPresigner } from '../../src/images/configured-presigner.ts';
import { createPresigner } from '../../src/images/presign.ts';

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
