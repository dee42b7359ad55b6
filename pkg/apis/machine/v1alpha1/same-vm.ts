/**
 * Whether two provider ids name one VM; undefined when one of them is not known. Drivers and cloud controllers write different forms
 * of it: the original's driver for AWS records `aws:///eu-west-1/i-1` where the Node shows `aws:///eu-west-1a/i-1`, and Azure answers
 * in upper and lower case as it likes. What they have in common is the last segment, by which cluster-autoscaler matches too. An id
 * that ends before it names no VM, and is the same as itself only.
 */
export function isSameVM(a: string | undefined, b: string | undefined): boolean | undefined {
  if (a === undefined || a === '' || b === undefined || b === '') return undefined;
  if (a === b) return true;
  const segment = lastSegment(a);
  return segment !== '' && segment === lastSegment(b);
}

/**
 * Whether two ids are of one VM for certain: drivers make ids of what people write in classes, such as `WestEurope` and `westeurope`. The
 * last segment alone says nothing here: two accounts may each count their VMs, or name them as their Machines.
 */
export function isOneVM(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/**
 * Whether two ids end in the same segment, and that was drawn by the provider: no two accounts come to it, as they do where each counts its VMs
 * (`i-00000001`), or makes ids of what is `given`, such as names, or of parts of it. So they are of one VM if both VMs carry the UID of one Machine.
 */
export function endInOneDrawn(a: string, b: string, given: readonly string[]): boolean {
  if (isSameVM(a, b) !== true) return false;
  const segment = lastSegment(a);
  const [, word = ''] = DRAWN_UUID.exec(segment) ?? DRAWN_WORD.exec(segment) ?? [];
  const isNamed = given.some((one) => one.length >= 2 * PART_LENGTH && segment.includes(one.toLowerCase()));
  const isMade = hasPartOf(word, given) || isNamed;
  return isDrawn(word) && !isMade;
}

/** A UUID, also one of no version such as those of vSphere, but for hashes of names (RFC 9562, versions 3 and 5), after words of letters or four characters. */
const DRAWN_UUID =
  /^(?:[\da-z-]+\.)*(?:[a-z]+[-_:])*(?:[\da-z]{4}_)?((?!.{14}[35].{4}[89ab])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:\?.*)?$/;
/** A word after `i-`, which a region may precede, and the like. Of more words drivers make names, from which hashes of names cannot be told. */
const DRAWN_WORD = /^(?:[\da-z-]+\.)*(?:[a-z]{1,3}-|\d{4}_)?([\da-z]+)$/;

/** A part that is too long for chance. */
const PART_LENGTH = 8;

/** Whether a word has a part of what is given, with or without its dashes, in it: drivers cut ids to what a provider allows. */
function hasPartOf(word: string, given: readonly string[]): boolean {
  const [own = '', ...others] = [word, ...given].map((one) => one.toLowerCase().replaceAll(/[^\da-z]/g, ''));
  const parts = Array.from({ length: Math.max(0, own.length - PART_LENGTH + 1) }, (_, i) =>
    own.slice(i, i + PART_LENGTH),
  );
  return parts.some((part) => others.some((other) => other.includes(part)));
}

/** Whether a word is too long for chance, and no count with leading zeros, nor one of up to seven digits, after letters. */
function isDrawn(word: string): boolean {
  const significant = word.replace(/^[a-z]*[0-]+/, '');
  return significant.length >= PART_LENGTH && !/^[a-z]*\d{0,7}$/.test(significant);
}

function lastSegment(providerID: string): string {
  return providerID.slice(providerID.lastIndexOf('/') + 1).toLowerCase();
}

/** Whether the provider ids have one form, so that different ones are of different VMs. */
export function areOfOneScheme(a: string, b: string): boolean {
  return schemeOf(a) === schemeOf(b);
}

/** Who gave a provider id its form: `aws` of `aws:///zone/i-1`; kubelets without a cloud show ids of their own, or none. */
function schemeOf(providerID: string): string {
  return providerID.split('://', 1)[0] ?? '';
}
