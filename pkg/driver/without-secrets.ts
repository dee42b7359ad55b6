import { shortText } from '../apis/short-text.ts';

/** Longest text that is searched; what is kept of it is much shorter. */
const LONGEST_SEARCHED = 16_384;
/** Shorter values (`true`, `default`) would be found in any text. */
const SHORTEST_VALUE = 8;
/** Of a longer text, such as user data or a key file, words from this length on are keys and tokens, or as good as. */
const SHORTEST_WORD = 20;
/** Members of Secrets that say where, and no secret; without them an error would not say where either. */
const PUBLIC = /region|zone|url$|endpoint|domain|namespace|tenant|subscription|project|user_?name/i;
const HIDDEN = '[redacted]';
/** Bytes as JavaScript writes them: `[104,117]`, or `{"0":104,"1":117}`. */
const NUMBERS = /(?:"\d{1,9}":\s*)?\b\d{1,3}(?:\s*,\s*(?:"\d{1,9}":\s*)?\d{1,3}\b){7,}/g;
const NUMBER = /\b\d{1,3}\b(?!":)/g;
/** What may hold more than a value: the whole Secret, or a file. */
const BASE64 = /[\w+/-]{11,}={0,2}/g;

/**
 * A text of a provider without what it repeats of the Secret that it was called with: providers quote what they were sent, and their
 * words are stored in statuses, and told in Events and logs.
 */
export function withoutSecrets(text: string, secretData: Readonly<Record<string, Uint8Array>>): string {
  return hidden(shortText(text, LONGEST_SEARCHED), piecesOf(secretData));
}

/** Whether a text, however long, repeats what `withoutSecrets` would hide. */
export function repeatsSecrets(text: string, secretData: Readonly<Record<string, Uint8Array>>): boolean {
  return hidden(text, piecesOf(secretData)) !== text;
}

function hidden(text: string, pieces: readonly string[]): string {
  let clean = text;
  for (const piece of pieces) clean = clean.replaceAll(piece, HIDDEN);
  const unless = (written: string, bytes: Buffer): string => {
    const meant = bytes.toString('utf8');
    return pieces.some((piece) => meant.includes(piece)) ? HIDDEN : written;
  };
  return clean
    .replaceAll(NUMBERS, (list) => unless(list, Buffer.from(Array.from(list.matchAll(NUMBER), Number))))
    .replaceAll(BASE64, (word) => unless(word, Buffer.from(word, 'base64')));
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

/** A value as others write it: as it is, in JSON, in base64 (with padding or without, for URLs or not), in hex, in a URL, in a form. */
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
    bytes.toString('hex'),
    inURL,
    inQuery,
    inQuery.replaceAll('%20', '+'),
  ];
}
