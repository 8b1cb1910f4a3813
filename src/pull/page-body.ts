import { ByteWriter } from './record/byte-writer.ts';
import { recordWriter, type WrittenRecordTerms } from './record/record.ts';
import type { PageRow } from './view/transactions-view.ts';

/** Two image URLs of the usual length, and what stands between the parts of a record. */
const USUAL_REST_BYTES = 1_024;

/**
 * The body of a page, joined from rendered text, so that decimals never become JavaScript numbers, and from bytes, so that
 * nothing is encoded again. `pagination` is JSON in ASCII.
 */
export function pageBody(rows: readonly PageRow[], terms: WrittenRecordTerms, pagination: string): Buffer {
  const expectedBytes = rows.reduce(
    (sum, { head, fees }) => sum + head.length + fees.length + USUAL_REST_BYTES,
    USUAL_REST_BYTES,
  );
  const body = new ByteWriter(expectedBytes);
  const write = recordWriter(body, terms);
  body.ascii('{"data":[');
  for (const [index, row] of rows.entries()) {
    if (index > 0) body.ascii(',');
    write(row);
  }
  body.ascii(`],"pagination":${pagination}}`);
  return body.written();
}
