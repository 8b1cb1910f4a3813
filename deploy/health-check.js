/** Exits 0 if this container's operations listener answers 200 for the given path, `/healthz` or `/readyz`. */
const TIMEOUT_MS = 4_000;

const path = process.argv[2] ?? '/healthz';
const port = /:(\d+)$/.exec(process.env.FUEL_OPS_LISTEN || '127.0.0.1:9464')?.[1];
try {
  const { status } = await fetch(`http://127.0.0.1:${port}${path}`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  process.exitCode = status === 200 ? 0 : 1;
} catch (error) {
  process.stderr.write(`${path}: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
