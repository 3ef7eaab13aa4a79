// Every text we publish carries a marker, so that a later look can tell ours from others' and this run's
// from another's (design §9). A marker counts only from our own account. Its wording names nobody, so
// the public-voice rule never trips over it (R§12 W31).

export type MarkerKind = 'pull-request' | 'completion' | 'findings' | 'no-changes' | 'notice'

export type Marker = Readonly<{ kind: MarkerKind; runId: string; generation: number }>

/** An HTML comment that GitHub does not show. */
export function renderMarker(marker: Marker): string {
  return `<!-- automation-run:${marker.runId} kind:${marker.kind} generation:${marker.generation} -->`
}

/** Whether a text carries exactly this marker. */
export function carriesMarker(text: string, marker: Marker): boolean {
  return text.includes(renderMarker(marker))
}
