import { randomUUID } from 'node:crypto';
import Koa, { type Context } from 'koa';
import type { TransactionDatabase, TransactionDocument } from './database.ts';
import { imageUrls } from './image-urls.ts';
import { encodeCursor, parseQuery } from './query.ts';

export interface Customer {
  accountId: number;
  driverMobile: boolean;
  corporateIds: number[];
  corporateGroupIds: number[];
}

/** The pull API's page as it is conventionally written. */
export function createApp(database: TransactionDatabase, customers: Map<string, Customer>): Koa {
  const app = new Koa();
  app.use(async (ctx, next) => {
    ctx.set('X-Request-Id', randomUUID());
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  app.use(async (ctx) => {
    if (ctx.path !== '/api/v1/integration/transactions') return fail(ctx, 404, 'NOT_FOUND');
    if (ctx.method !== 'GET') return fail(ctx, 405, 'METHOD_NOT_ALLOWED');
    const customer = customers.get(ctx.get('X-API-Key'));
    if (customer === undefined) return fail(ctx, 401, 'INVALID_API_KEY');
    const parsed = parseQuery(new URLSearchParams(ctx.querystring));
    if (!parsed.ok) return fail(ctx, 400, 'VALIDATION_FAILED', parsed.fields);
    const { filter } = parsed;
    if (
      filter.corporateGroupId !== undefined &&
      !customer.corporateGroupIds.includes(filter.corporateGroupId)
    )
      return fail(ctx, 404, 'CORPORATE_GROUP_NOT_FOUND');
    if (filter.corporateIds?.some((id) => !customer.corporateIds.includes(id)))
      return fail(ctx, 404, 'CORPORATE_NOT_FOUND');

    const found = database.find({ ...filter, accountId: customer.accountId });
    const records = found.slice(0, filter.limit);
    const hasMore = found.length > filter.limit;
    const last = records.at(-1);
    const body = {
      data: await Promise.all(records.map((record) => present(record, customer))),
      pagination: {
        limit: filter.limit,
        has_more: hasMore,
        next_cursor:
          hasMore && last !== undefined
            ? encodeCursor({ createdAt: Date.parse(last.created_at), id: last.id })
            : null,
      },
    };
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(body);
  });
  return app;
}

async function present(record: TransactionDocument, customer: Customer): Promise<object> {
  const { mobile_number, ...driver } = record.driver;
  return {
    ...record,
    driver: customer.driverMobile && mobile_number !== undefined ? { ...driver, mobile_number } : driver,
    images: await imageUrls(record.images),
  };
}

function fail(ctx: Context, status: number, code: string, fields?: Record<string, string>): void {
  ctx.status = status;
  ctx.body = { error: { code, message: code, request_id: ctx.response.get('X-Request-Id'), fields } };
}
