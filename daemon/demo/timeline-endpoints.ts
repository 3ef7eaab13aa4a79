import type { ApiRequest } from './api-request.ts'
import type { Hub } from './hub.ts'
import { listReply } from './pagination.ts'
import type { Reply } from './replies.ts'
import { listedEvents, restEvent, restTimelineEntry, timelineItems } from './rest-timeline.ts'
import { visibleIn } from './visibility-lag.ts'
import type { Issue, Repository } from './world.ts'

export function listEvents(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const visible = visibleIn(hub.lag, listedEvents(issue), request.now)
  return listReply(request, visible, (event) => restEvent(hub, repository, event))
}

export function listTimeline(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const visible = visibleIn(hub.lag, timelineItems(issue), request.now)
  return listReply(request, visible, (item) => restTimelineEntry(hub, repository, issue, item))
}
