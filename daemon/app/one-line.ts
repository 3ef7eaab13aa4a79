/** A text without control characters: errors quote workers and servers, which must not control a terminal. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g, ' ')
}
