// The endpoints of what happened to an issue.

import type { IssueEndpoint } from './endpoint.ts'
import { listReply } from './list-pages.ts'
import { listedEvents, restEvent, restTimelineEntry, timelineItems } from './rest-event.ts'
import { visibleIn } from './test-read-lag.ts'

export const listEvents: IssueEndpoint = (context, request, repository, issue) => {
  const visible = visibleIn(context.lag, listedEvents(issue), request.now)
  return listReply(request, visible, (event) => restEvent(context, repository, event))
}

export const listTimeline: IssueEndpoint = (context, request, repository, issue) => {
  const visible = visibleIn(context.lag, timelineItems(issue), request.now)
  return listReply(request, visible, (item) => restTimelineEntry(context, repository, issue, item))
}
