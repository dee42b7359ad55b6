/** Longest text from outside that is stored or compared, in UTF-16 code units. */
export const LONGEST_TEXT = 1_024;
/** How much of its end a text keeps: the cause often stands last, and what we add stands there. */
const END = 256;

/**
 * A text that is not longer than `longest`: of a longer one the middle is left out, and how much that is told. The same text gives the
 * same result, and a result is not cut again. What providers, API servers and users write may be of any length; what is kept of it in
 * statuses, and compared in each pass, must not.
 */
export function shortText(text: string, longest = LONGEST_TEXT): string {
  if (text.length <= longest) return text;
  const gap = (left: number): string => ` … (${left} characters omitted) … `;
  const room = longest - gap(text.length).length;
  const end = Math.min(END, Math.floor(room / 2));
  const begin = room - end;
  return (text.slice(0, begin) + gap(text.length - room) + text.slice(text.length - end)).toWellFormed();
}

/** `a, b and 3 more`: the first `most` of `names`, and how many others there are. */
export function namedUpTo(most: number, names: readonly string[], and = ' and'): string {
  const more = names.length > most ? `${and} ${names.length - most} more` : '';
  return `${names.slice(0, most).join(', ')}${more}`;
}
