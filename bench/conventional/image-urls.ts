import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';

const BUCKET = 'fuel-photos';
const VALID_FOR_SECONDS = 60 * 60;

const s3 = new S3Client({
  endpoint: 'https://photos.example.com',
  region: 'us-east-1',
  forcePathStyle: true,
  credentials: { accessKeyId: 'SAMPLEACCESSKEY', secretAccessKey: 'sample-secret-access-key' },
});

export interface ImageUrls {
  pump: string | null;
  odometer: string | null;
  expires_at: string;
}

export async function imageUrls(keys: { pump: string | null; odometer: string | null }): Promise<ImageUrls> {
  const [pump, odometer] = await Promise.all([sign(keys.pump), sign(keys.odometer)]);
  return { pump, odometer, expires_at: new Date(Date.now() + VALID_FOR_SECONDS * 1000).toISOString() };
}

async function sign(key: string | null): Promise<string | null> {
  if (key === null) return null;
  const command = new GetObjectCommand({ Bucket: BUCKET, Key: key });
  return getSignedUrl(s3, command, { expiresIn: VALID_FOR_SECONDS });
}
