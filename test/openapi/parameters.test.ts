import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDateTime } from '../../src/domain/values/date-time.ts';
import { operation, type Parameter } from '../support/openapi/document.ts';
import { allowedTexts, forbiddenTexts } from '../support/openapi/parameter-texts.ts';
import { accountEvents, startTestApi, type TestApi } from '../support/service/api.ts';

const RUNS = { numRuns: 60 };
const DAY_MS = 24 * 60 * 60 * 1000;
const RANGE = { from: '2026-09-01T00:00:00Z', to: '2026-09-30T00:00:00Z' };
/** The document leaves these to the service, since no schema says what a cursor is. */
const OPAQUE = ['cursor'];

const parameters = operation.parameters.filter(({ name }) => !OPAQUE.includes(name));
const names = operation.parameters.map(({ name }) => name);

type Query = Readonly<Record<string, string>>;

const start = () =>
  startTestApi({
    events: accountEvents().map((event) =>
      event.type === 'KeyIssued' ? { ...event, data: { ...event.data, rate_limit: 100_000 } } : event,
    ),
  });

/** Returns how the parameters were judged, whatever is said about the things that they name. */
async function judge(api: TestApi, query: Query, more = ''): Promise<'accepted' | string[]> {
  const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join('='));
  const { status, body } = await api.get(`${pairs.join('&')}${more}`);
  if (status === 200) return 'accepted';
  const { code, fields } = body.error;
  if (code === 'CORPORATE_NOT_FOUND' || code === 'CORPORATE_GROUP_NOT_FOUND') return 'accepted';
  expect([status, code]).toEqual([400, 'VALIDATION_FAILED']);
  return Object.keys(fields).toSorted();
}

/** Returns a query that is right except for the text of one parameter. */
function queryWith({ name }: Parameter, text: string): Query {
  if (name !== 'from' && name !== 'to') return { ...RANGE, [name]: text };
  const ms = parseDateTime(text);
  if (ms === undefined) return { ...RANGE, [name]: text };
  const other = new Date(name === 'from' ? ms + 31 * DAY_MS : ms - 31 * DAY_MS).toISOString();
  return name === 'from' ? { from: text, to: other } : { from: other, to: text };
}

/** True unless the year is a bound. These are in the description, and such a range ends beyond them. */
const isInInnerYears = (text: string) => !/^(?:0000|9999)-/.test(text);

describe.each(parameters.map((parameter) => [parameter.name, parameter] as const))(
  'the parameter %s',
  (name, parameter) => {
    it('is accepted with each text that the document allows', async () => {
      const api = await start();
      const tried = fc.asyncProperty(allowedTexts(parameter).filter(isInInnerYears), async (text) => {
        expect(await judge(api, queryWith(parameter, text))).toBe('accepted');
      });
      await fc.assert(tried, RUNS);
    });

    it('is refused by its name with each text that the document does not allow', async () => {
      const api = await start();
      const tried = fc.asyncProperty(forbiddenTexts(parameter), async (text) => {
        expect(await judge(api, queryWith(parameter, text))).toEqual([name]);
      });
      await fc.assert(tried, RUNS);
    });

    it('is refused when it stands twice, or is missing and required', async () => {
      const api = await start();
      const [text = ''] = fc.sample(allowedTexts(parameter).filter(isInInnerYears), { numRuns: 1, seed: 1 });
      const query = queryWith(parameter, text);
      const again = `&${name}=${encodeURIComponent(text)}`;
      expect(await judge(api, query, again)).toEqual([name]);
      const without = Object.fromEntries(Object.entries(query).filter(([other]) => other !== name));
      expect(await judge(api, without)).toEqual(parameter.required === true ? [name] : 'accepted');
    });
  },
);

describe('the parameters together', () => {
  const optional = parameters.filter(({ required }) => required !== true);
  const queries = fc.record(Object.fromEntries(optional.map((one) => [one.name, allowedTexts(one)])), {
    requiredKeys: [],
  });

  it('are accepted in every combination', async () => {
    const api = await start();
    const tried = fc.asyncProperty(queries, async (query) => {
      expect(await judge(api, { ...query, ...RANGE } as Query)).toBe('accepted');
    });
    await fc.assert(tried, RUNS);
  });

  it('are each named where several are wrong', async () => {
    const api = await start();
    const wrong = fc.record(
      Object.fromEntries(parameters.map((one) => [one.name, forbiddenTexts(one)])) as Readonly<
        Record<string, fc.Arbitrary<string>>
      >,
      { requiredKeys: [] },
    );
    const tried = fc.asyncProperty(wrong, async (query) => {
      fc.pre(Object.keys(query).length > 0);
      expect(await judge(api, { ...RANGE, ...(query as Query) })).toEqual(Object.keys(query).toSorted());
    });
    await fc.assert(tried, RUNS);
  });

  it('have the defaults that the document names', async () => {
    const api = await start();
    const { body } = await api.get(new URLSearchParams(RANGE).toString());
    const defaults = parameters.flatMap(({ name, schema }) =>
      schema.default === undefined ? [] : [[name, schema.default]],
    );
    expect(defaults).toEqual([['limit', body.pagination.limit]]);
  });

  it('are all that there is: any other name is refused', async () => {
    const api = await start();
    const others = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.constantFrom('page', 'offset', 'From', 'status[]', 'account_id', '__proto__', 'limit '),
    );
    const tried = fc.asyncProperty(
      others.filter((name) => !names.includes(name)),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
      async (name, text) => {
        const pair = [name, text].map(encodeURIComponent).join('=');
        expect(await judge(api, RANGE, `&${pair}`)).toEqual([name]);
      },
    );
    await fc.assert(tried, RUNS);
  });

  it('have no cursor but one that was given', async () => {
    const api = await start();
    const cursors = fc.oneof(
      fc.constant(''),
      fc.string({ unit: 'grapheme' }),
      fc.stringMatching(/^[A-Za-z0-9_-]{60}$/),
    );
    const tried = fc.asyncProperty(cursors, async (cursor) => {
      expect(await judge(api, { ...RANGE, cursor })).toEqual(['cursor']);
    });
    await fc.assert(tried, RUNS);
  });
});
