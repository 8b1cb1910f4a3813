import type { PageQuery, PageRow, ViewReads } from './transactions-view.ts';

/** Rows of one page at most. */
const PAGE = 500;

/** Reads the rows of a query newest first, page by page, without a limit of time or number. */
export async function* listRows(
  view: Pick<ViewReads, 'page'>,
  query: Omit<PageQuery, 'limit'>,
  pageSize = PAGE,
): AsyncGenerator<PageRow> {
  for await (const rows of listPages(view, query, pageSize)) yield* rows;
}

/** As `listRows`, page by page. */
export async function* listPages(
  view: Pick<ViewReads, 'page'>,
  query: Omit<PageQuery, 'limit'>,
  pageSize: number,
): AsyncGenerator<readonly PageRow[]> {
  let { after } = query;
  for (;;) {
    const { rows, hasMore } = await view.page({ ...query, after, limit: Math.min(pageSize, PAGE) });
    yield rows;
    after = rows.at(-1);
    if (!hasMore) return;
  }
}
