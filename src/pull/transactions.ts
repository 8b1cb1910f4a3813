import { type RecordTerms, recordText } from '../../projections/record.ts';
import type { AccessRows, Caller } from '../accounts/caller.ts';
import type { Clock } from '../base/clock.ts';
import { type AccountKey, accessOf } from '../domain/account.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import type { Presigner } from '../records/presign.ts';
import { answer, goodAnswer, type RefusalCode, refuse, type Step } from './answers.ts';
import type { ApiMetrics } from './api-metrics.ts';
import type { Cursors } from './cursor.ts';
import { type ListQuery, readParameters } from './parameters.ts';
import { tracedStep } from './request-spans.ts';
import type { PageRow, TransactionsView, ViewPage } from './view/transactions-view.ts';

const IMAGES_VALID_FOR_SECONDS = 60 * 60;

export interface TransactionsOptions {
  readonly accounts: Pick<AccessRows, 'members'>;
  readonly view: Pick<TransactionsView, 'page'>;
  readonly presigner: Presigner;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly metrics: ApiMetrics;
}

interface Access {
  readonly accountId: number;
  readonly key: AccountKey;
  /** The time at which the current charging profile ends; `null` if it is open-ended. */
  readonly endsAtMs: number | null;
}

/** The endpoint: checks 3 to 5, then the parameters, then the corporates that they name, then one page. */
export function listTransactions(options: TransactionsOptions): Step {
  const { accounts, view, cursors, clock, metrics } = options;
  return async (ctx) => {
    const access = checkAccess(ctx.state.caller, clock.now());
    if (access !== 'INVALID_API_KEY') ctx.state.keyAccepted?.();
    if (typeof access === 'string') return refuse(ctx, { code: access });
    const { accountId } = access;
    const parameters = readParameters(ctx.state.rawQuery, (text, filters) =>
      cursors.decode(text, { accountId, filters }),
    );
    if (!parameters.ok) return refuse(ctx, { code: 'VALIDATION_FAILED', fields: parameters.fields });
    ctx.state.query = parameters.query;
    const foreign = await findForeign(parameters.query, accountId, accounts);
    if (foreign !== undefined) return refuse(ctx, { code: foreign });

    const { query } = parameters;
    const page = await tracedStep(ctx, 'page', () => view.page({ ...query, accountId }));
    ctx.state.rows = page.rows.length;
    metrics.pageRows.inc(page.rows.length);
    answer(ctx, goodAnswer(bodyOf(page, parameters.query, access, options), ctx.state.requestId));
    if (access.endsAtMs !== null) ctx.set('X-Access-Expires-At', formatDateTime(access.endsAtMs));
  };
}

/**
 * Makes checks 3, 4 and 5, in that order, for one moment. A valid key whose account can't be read is refused as
 * unavailable, since the account's data can't be trusted.
 */
function checkAccess(caller: Caller | undefined, nowMs: number): Access | RefusalCode {
  if (caller?.known === undefined || !caller.proven || !caller.known.key.active) return 'INVALID_API_KEY';
  const { accountId, key, unreadable, access: terms } = caller.known;
  const access = accessOf(unreadable === null ? terms : undefined, nowMs);
  return access.open ? { accountId, key, endsAtMs: access.endsAtMs } : access.code;
}

/** Returns the refusal for a group or corporate that is not the account's, or for a corporate outside the group. */
async function findForeign(
  query: ListQuery,
  accountId: number,
  accounts: Pick<AccessRows, 'members'>,
): Promise<RefusalCode | undefined> {
  const { corporate_group_id: groupId, corporate_id: corporateIds = [] } = query.references;
  if (groupId === undefined && corporateIds.length === 0) return undefined;
  const named = { groups: groupId === undefined ? [] : [groupId], corporates: corporateIds };
  const { groups, corporates } = await accounts.members(accountId, named);
  if (groupId !== undefined && !groups.has(groupId)) return 'CORPORATE_GROUP_NOT_FOUND';
  const own = corporateIds.every((id) => {
    const group = corporates.get(id);
    return group !== undefined && (groupId === undefined || group === groupId);
  });
  return own ? undefined : 'CORPORATE_NOT_FOUND';
}

function bodyOf(page: ViewPage, query: ListQuery, access: Access, options: TransactionsOptions): Buffer {
  const { presign, expiresAtMs } = options.presigner.at(options.clock.now(), IMAGES_VALID_FOR_SECONDS);
  const last = page.rows.at(-1);
  const next =
    page.hasMore && last !== undefined
      ? `"${options.cursors.encode({ accountId: access.accountId, filters: query, place: last })}"`
      : 'null';
  return pageBody(
    page.rows,
    { mobileNumber: access.key.driverMobile, presign, expiresAt: formatDateTime(expiresAtMs) },
    `{"limit":${query.limit},"has_more":${page.hasMore},"next_cursor":${next}}`,
  );
}

/**
 * Joins the body of a page from rendered text, so that decimals never become JavaScript numbers. `pagination` is JSON.
 */
export function pageBody(rows: readonly PageRow[], terms: RecordTerms, pagination: string): Buffer {
  const parts = rows.map((row, index) =>
    Buffer.from(`${index === 0 ? '{"data":[' : ','}${recordText(row.record, terms)}`),
  );
  return Buffer.concat([
    ...parts,
    Buffer.from(`${rows.length === 0 ? '{"data":[' : ''}],"pagination":${pagination}}`),
  ]);
}
