import { shortText } from '../apis/short-text.ts';

/** Longest text that is searched; what is kept of it is much shorter. */
const LONGEST_SEARCHED = 16_384;
/** Shorter values (`true`, `default`) would be found in any text. */
const SHORTEST_VALUE = 8;
/** Of a longer text, such as user data or a key file, words from this length on are keys and tokens, or as good as. */
const SHORTEST_WORD = 20;
/** Members of Secrets that say where, and no secret; without them an error would not say where either. */
const PUBLIC = /region|zone|url$|endpoint|domain|tenant|subscription|project|user_?name/i;
const HIDDEN = '[redacted]';

/**
 * A text of a provider without what it repeats of the Secret that it was called with: providers quote what they were sent, and their
 * words are stored in statuses, and told in Events and logs.
 */
export function withoutSecrets(text: string, secretData: Readonly<Record<string, Uint8Array>>): string {
  let clean = shortText(text, LONGEST_SEARCHED);
  for (const piece of piecesOf(secretData)) clean = clean.replaceAll(piece, HIDDEN);
  return clean;
}

/** Everything that must not be shown, the longest first, as one may hold another. */
function piecesOf(secretData: Readonly<Record<string, Uint8Array>>): readonly string[] {
  const pieces = new Set<string>();
  for (const [name, bytes] of Object.entries(secretData)) {
    if (PUBLIC.test(name)) continue;
    const value = Buffer.from(bytes).toString('utf8').trim();
    for (const form of formsOf(value, Buffer.from(bytes))) if (form.length >= SHORTEST_VALUE) pieces.add(form);
    for (const word of value.split(/[\s"'`,;=\\]+/)) {
      const isAddress = word.includes('://') && !word.includes('@');
      if (word.length >= SHORTEST_WORD && !isAddress) pieces.add(word);
    }
  }
  return [...pieces].toSorted((a, b) => b.length - a.length);
}

/** A value as others write it: as it is, in JSON, in base64 (with padding or without, for URLs or not), in a URL, in a form. */
function formsOf(value: string, bytes: Buffer): readonly string[] {
  const inURL = encodeURIComponent(value.toWellFormed());
  // What most other languages encode beyond that.
  const inQuery = inURL.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const base64 = bytes.toString('base64');
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    base64,
    base64.replace(/=+$/, ''),
    bytes.toString('base64url'),
    inURL,
    inQuery,
    inQuery.replaceAll('%20', '+'),
  ];
}
