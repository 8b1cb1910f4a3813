import type { ReceivedSpan } from './otlp-receiver.ts';

const WIDTH = 760;
const NAMES = 190;
const ROW = 34;
const COLOURS = { root: '#5b6b7b', failed: '#c0392b', done: '#2e7d4f' } as const;

/** Draws the spans of one trace as SVG, in the order of their starts, with the waits as gaps. */
export function traceSvg(spans: readonly ReceivedSpan[]): string {
  const rows = spans.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
  const beganMs = Math.min(...rows.map(({ startMs }) => startMs));
  const endedMs = Math.max(...rows.map(({ endMs }) => endMs));
  const x = (ms: number): number => NAMES + ((ms - beganMs) / (endedMs - beganMs)) * (WIDTH - NAMES - 90);
  const lines = rows.map((span, index) => {
    const { name, startMs, endMs, parentId, isError, attributes } = span;
    const colour = parentId === '' ? COLOURS.root : isError ? COLOURS.failed : COLOURS.done;
    const status = attributes['http.response.status_code'] ?? attributes['error.type'];
    const label = parentId === '' ? name : `  ${name} ${attributes['server.address']}`;
    const y = 16 + index * ROW;
    const width = Math.max(2, x(endMs) - x(startMs));
    const note = `${status === undefined ? '' : `${status}, `}${Math.round(endMs - startMs)} ms`;
    return [
      `<text x="${parentId === '' ? 8 : 24}" y="${y + 14}">${label.trim()}</text>`,
      `<rect x="${x(startMs).toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="20" rx="3" fill="${colour}"/>`,
      `<text x="${(x(endMs) + 6).toFixed(1)}" y="${y + 14}">${note}</text>`,
    ].join('\n  ');
  });
  const height = 24 + rows.length * ROW;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`;
  const title = `<title>The trace ${rows[0]?.traceId}</title>`;
  return `${head}\n  ${title}\n  <rect width="100%" height="100%" fill="#fff"/>\n  ${lines.join('\n  ')}\n</svg>\n`;
}
