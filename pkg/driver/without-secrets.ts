import { shortText } from '../apis/short-text.ts';

/** Longest text that is searched; what is kept of it is much shorter. */
const LONGEST_SEARCHED = 16_384;
/** Shorter values (`true`, `default`) would be found in any text. */
const SHORTEST_VALUE = 8;
/** Of a longer text, such as user data or a key file, words from this length on are keys and tokens, or as good as. */
const SHORTEST_WORD = 20;
/** Members of Secrets that say where, and no secret; without them an error would not say where either. */
const PUBLIC = /region|zone|url$|endpoint|domain|namespace|tenant|subscription|project|user_?name/i;
/** Members that are secret whatever else their names say. */
const PRIVATE = /pass|secret|token|credential|private|keys?$/i;
/** An address with a password in it. */
const CREDENTIALS = /:\/\/[^\s/]*@/;
const HIDDEN = '[redacted]';
/** Bytes as JavaScript writes them, `[104,117]` or `{"0":104,"1":117}`, and as Go does, `[104 117]`. */
const NUMBERS = /(?:"\d{1,9}":\s*)?\b\d{1,3}(?:(?:\s*,\s*|\s+)(?:"\d{1,9}":\s*)?\b\d{1,3}\b){7,}/g;
const NUMBER = /\b\d{1,3}\b(?!":)/g;
/** What may hold more than a value: the whole Secret, a file, or a user with a password. */
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
    .replaceAll(BASE64, (word) => (decodingsOf(word).every((bytes) => unless(word, bytes) === word) ? word : HIDDEN));
}

/** Of a word that may begin with something else, such as the path before it. */
function decodingsOf(word: string): readonly Buffer[] {
  return [0, 1, 2, 3].map((offset) => Buffer.from(word.slice(offset), 'base64'));
}

/**
 * Everything that must not be shown, the longest first, as one may hold another. Drivers in Go have the same rules
 * (packages/mcm-provider/secrets.go), by the same table of cases.
 */
function piecesOf(secretData: Readonly<Record<string, Uint8Array>>): readonly string[] {
  const pieces = new Set<string>();
  for (const [name, bytes] of Object.entries(secretData)) {
    const value = Buffer.from(bytes).toString('utf8').trim();
    if (PUBLIC.test(name) && !PRIVATE.test(name) && !CREDENTIALS.test(value)) continue;
    for (const form of formsOf(value, Buffer.from(bytes))) if (hasLength(form, SHORTEST_VALUE)) pieces.add(form);
    for (const word of value.split(/[\s"'`,;=\\]+/)) {
      const isAddress = word.includes('://') && !word.includes('@');
      if (hasLength(word, SHORTEST_WORD) && !isAddress) pieces.add(word);
    }
  }
  return [...pieces].toSorted((a, b) => b.length - a.length);
}

/** In characters, each of which is one or two units of UTF-16. */
function hasLength(text: string, atLeast: number): boolean {
  return text.length >= 2 * atLeast || Array.from(text).length >= atLeast;
}

/** A value as others write it: as it is, in JSON, in base64 (with padding or without, for URLs or not), in hex, in a URL, in a form. */
function formsOf(value: string, bytes: Buffer): readonly string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const inURL = encodeURIComponent(value);
  // What most other languages encode beyond that.
  const inQuery = inURL.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const inForm = inQuery.replaceAll('%20', '+');
  // Go leaves these signs in paths as they are.
  const inPath = inQuery.replaceAll(/%(?:24|26|2B|3A|3D|40)/g, (code) => decodeURIComponent(code));
  const base64 = bytes.toString('base64');
  const hex = bytes.toString('hex');
  return [
    value,
    json,
    // As Go and as Python write it.
    json.replaceAll(/[<>&\u2028\u2029]/g, escaped),
    json.replaceAll(/[^\0-\x7f]/g, escaped),
    base64,
    base64.replace(/=+$/, ''),
    bytes.toString('base64url'),
    hex,
    hex.toUpperCase(),
    ...[inURL, inQuery, inForm, inPath].flatMap((form) => [
      form,
      form.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase()),
    ]),
  ];
}

/** A unit of UTF-16 in JSON. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
