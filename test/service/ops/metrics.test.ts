import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { RANGE, startTestApi } from '../../support/service/api.ts';
import { showing } from '../../support/transactions/records.ts';

/** Returns the scraped values of one metric by their labels. */
async function scraped(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  const text = await metrics.text();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

describe('the metrics of the API', () => {
  test('count answers by status and code, and the rows of pages', async () => {
    const metrics = createMetrics();
    const api = await startTestApi({ metrics });
    await api.show(
      ...[1, 2, 3].map((id) => showing({ id, createdAtMs: Date.parse('2026-09-10T00:00:00Z') })),
    );
    for (const query of [RANGE, `${RANGE}&limit=2`, 'limit=0']) await api.get(query);
    expect(await scraped(metrics, 'fuel_http_requests_total')).toEqual([
      'fuel_http_requests_total{status="200",code=""} 2',
      'fuel_http_requests_total{status="400",code="VALIDATION_FAILED"} 1',
    ]);
    expect(await scraped(metrics, 'fuel_page_rows_total')).toEqual(['fuel_page_rows_total 5']);
  });

  test('say how long answers took, in seconds', async () => {
    const metrics = createMetrics();
    const api = await startTestApi({ metrics });
    await api.get(RANGE);
    const [count = ''] = await scraped(metrics, 'fuel_http_request_duration_seconds_count');
    expect(count).toBe('fuel_http_request_duration_seconds_count{status="200"} 1');
    const [sum = ''] = await scraped(metrics, 'fuel_http_request_duration_seconds_sum');
    const seconds = Number(sum.split(' ')[1]);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThan(5); // in milliseconds it would be larger
    const line = api.logLines.find(({ msg }) => msg === 'request');
    expect(seconds).toBeCloseTo(Number(line?.duration_ms) / 1000, 4);
  });
});
