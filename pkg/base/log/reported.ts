/**
 * Whether the failure of an attempt is worth a warning: the first, as nobody knows of it yet; the third, as it is no blink; then each
 * tenth, as it goes on.
 */
export function isReported(attempt: number): boolean {
  return attempt === 1 || attempt === 3 || attempt % 10 === 0;
}
