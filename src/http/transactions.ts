import type { Clock } from '../clock.ts';
import type { Account } from '../domain/account.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import type { Presigner } from '../images/presign.ts';
import type { Metrics } from '../ops/metrics.ts';
import { recordText } from '../transactions/record.ts';
import type { TransactionsView, ViewPage } from '../transactions/view/transactions-view.ts';
import { type Access, checkAccess } from './access-checks.ts';
import { goodAnswer, type RefusalCode } from './answers.ts';
import { answer, refuse, type Step } from './context.ts';
import type { Cursors } from './cursor.ts';
import { type ListQuery, readParameters } from './parameters.ts';

const IMAGES_VALID_FOR_SECONDS = 60 * 60;

export interface TransactionsOptions {
  readonly view: Pick<TransactionsView, 'page'>;
  readonly presigner: Presigner;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** The endpoint: checks 3 to 5, then the parameters, then what they name, then one page. */
export function listTransactions(options: TransactionsOptions): Step {
  const { view, cursors, clock, metrics } = options;
  return async (ctx) => {
    const access = checkAccess(ctx.state.caller, clock.now());
    ctx.state.keyAccepted = access !== 'INVALID_API_KEY';
    if (typeof access === 'string') return refuse(ctx, { code: access });
    const accountId = access.account.id;
    const parameters = readParameters(ctx.state.rawQuery, (text, filters) =>
      cursors.decode(text, { accountId, filters }),
    );
    if (!parameters.ok) return refuse(ctx, { code: 'VALIDATION_FAILED', fields: parameters.fields });
    const foreign = findForeign(parameters.query, access.account);
    if (foreign !== undefined) return refuse(ctx, { code: foreign });

    const page = await view.page({ ...parameters.query, accountId });
    ctx.state.rows = page.rows.length;
    metrics.pageRows.inc(page.rows.length);
    if (page.entriesRead !== undefined) metrics.pageEntriesRead.inc(page.entriesRead);
    answer(ctx, goodAnswer(pageBody(page, parameters.query, access, options), ctx.state.requestId));
    if (access.endsAtMs !== null) ctx.set('X-Access-Expires-At', formatDateTime(access.endsAtMs));
  };
}

/** The group or a corporate that is not the account's today, or not the group's; the group is judged first. */
function findForeign(query: ListQuery, account: Account): RefusalCode | undefined {
  const { corporateGroupId: groupId, corporateIds = [] } = query;
  if (groupId !== undefined && !account.groups.has(groupId)) return 'CORPORATE_GROUP_NOT_FOUND';
  const own = corporateIds.every((id) => {
    const corporate = account.corporates.get(id);
    return corporate !== undefined && (groupId === undefined || corporate.groupId === groupId);
  });
  return own ? undefined : 'CORPORATE_NOT_FOUND';
}

/**
 * Joined from rendered text: the records' decimals never become JavaScript numbers. Each record is encoded by
 * itself, since one name in another script would make the text of the whole page twice as wide.
 */
function pageBody(page: ViewPage, query: ListQuery, access: Access, options: TransactionsOptions): Buffer {
  const { presign, expiresAtMs } = options.presigner.at(options.clock.now(), IMAGES_VALID_FOR_SECONDS);
  const terms = {
    mobileNumber: access.key.driverMobile,
    presign,
    expiresAt: formatDateTime(expiresAtMs),
  };
  const last = page.rows.at(-1);
  const next =
    page.hasMore && last !== undefined
      ? `"${options.cursors.encode({ accountId: access.account.id, filters: query, place: last })}"`
      : 'null';
  const parts = page.rows.map((row, index) =>
    Buffer.from(`${index === 0 ? '' : ','}${recordText(row, terms)}`),
  );
  const pagination = `{"limit":${query.limit},"has_more":${page.hasMore},"next_cursor":${next}}`;
  return Buffer.concat([Buffer.from('{"data":['), ...parts, Buffer.from(`],"pagination":${pagination}}`)]);
}
