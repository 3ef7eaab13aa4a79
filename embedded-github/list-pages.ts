import type { ApiRequest } from './api-request.ts'
import type { Reply } from './replies.ts'

const DEFAULT_PER_PAGE = 30
const MAX_PER_PAGE = 100

/** One page of a list, with GitHub's Link header (GitHub docs, "Using pagination in the REST API"). */
export function listReply<Item>(
  request: Pick<ApiRequest, 'query' | 'pageUrl'>,
  items: readonly Item[],
  present: (item: Item) => unknown,
): Reply {
  const perPage = Math.min(MAX_PER_PAGE, positive(request.query.get('per_page'), DEFAULT_PER_PAGE))
  const page = positive(request.query.get('page'), 1)
  const body = items.slice((page - 1) * perPage, page * perPage).map(present)
  const link = linkHeader(request, page, Math.max(1, Math.ceil(items.length / perPage)))
  return { status: 200, body, headers: link === '' ? {} : { Link: link } }
}

/** Empty when there is but one page. */
function linkHeader(
  request: Pick<ApiRequest, 'query' | 'pageUrl'>,
  page: number,
  lastPage: number,
): string {
  const link = (rel: string, to: number): string => {
    const query = new URLSearchParams(request.query)
    query.set('page', String(to))
    return `<${request.pageUrl}?${query.toString()}>; rel="${rel}"`
  }
  const back = page > 1 ? [link('prev', Math.min(page - 1, lastPage))] : []
  const forth = page < lastPage ? [link('next', page + 1), link('last', lastPage)] : []
  const first = page > 1 ? [link('first', 1)] : []
  return [...back, ...forth, ...first].join(', ')
}

function positive(text: string | null, otherwise: number): number {
  const value = Number(text)
  return text !== null && Number.isInteger(value) && value > 0 ? value : otherwise
}
