import leven from 'leven';

/** How many names are suggested. */
const SUGGESTED = 3;
/** How much of a word may be mistyped. */
const MISTYPED_SHARE = 0.4;

/** `; did you mean "a" or "b"?` of the names that are like `word`, the likeliest first; '' when there is none. */
export function didYouMean(word: string, names: Iterable<string>): string {
  const typed = word.toLowerCase();
  const likely = [...new Set(names)]
    .map((name) => ({ name, distance: distanceOf(typed, name.toLowerCase()) }))
    .filter(({ distance }) => distance <= Math.max(1, Math.floor(typed.length * MISTYPED_SHARE)))
    .toSorted((a, b) => a.distance - b.distance || a.name.length - b.name.length || (a.name < b.name ? -1 : 1))
    .slice(0, SUGGESTED)
    .map(({ name }) => `"${name}"`);
  return likely.length === 0 ? '' : `; did you mean ${likely.join(' or ')}?`;
}

/** A name that begins with what was typed is likelier than any that is spelled otherwise: names of machines end in a random part. */
function distanceOf(typed: string, name: string): number {
  return typed !== '' && name.startsWith(typed) ? 0 : leven(typed, name);
}
