import { expect, test } from 'vitest';
import { csvRecord } from '../../../src/operator/print/csv.ts';

test('a record of CSV quotes commas and quotes, ends as RFC 4180 says, and has nothing for what is missing', () => {
  expect(csvRecord(['a, b', 'say "no"', 7, true, null, undefined, ''])).toBe(
    '"a, b","say ""no""",7,true,,,\r\n',
  );
});

test('a record of CSV has objects and lists as JSON, and stays on one line', () => {
  expect(csvRecord([{ code: 'X' }, [1, 2], 'two\nlines'])).toBe(
    '"{""code"":""X""}","[1,2]",two\\u000alines\r\n',
  );
});

test.each(['=1+1', '+SUM(A1)', '-cmd', '@x', '\t=1', '\r=1'])(
  'a text that a spreadsheet would run as a formula is escaped: %j',
  (text) => {
    expect(csvRecord([text])[0]).toBe("'");
  },
);

test('a negative number is no formula', () => {
  expect(csvRecord(['-45.20', -3, '-45.20.1'])).toBe("-45.20,-3,'-45.20.1\r\n");
});
