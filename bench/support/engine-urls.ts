/**
 * The addresses of the engines, removed from the environment: the embedded benchmarks and the processes that they start
 * must not find them there. Imported before any benchmark.
 */
export const engineUrls: Readonly<
  Record<'EVENTSTORE_URL' | 'MONGODB_URL' | 'POSTGRES_URL', string | undefined>
> = {
  EVENTSTORE_URL: take('EVENTSTORE_URL'),
  MONGODB_URL: take('MONGODB_URL'),
  POSTGRES_URL: take('POSTGRES_URL'),
};

function take(name: string): string | undefined {
  const value = process.env[name];
  delete process.env[name];
  return value === '' ? undefined : value;
}
