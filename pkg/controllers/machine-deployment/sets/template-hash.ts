import type { MachineTemplateSpec } from '../../../apis/machine/v1alpha1/machine.ts';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** How the digits of a hash appear in names: no digits that look like a count, and vowels never. */
const NAME_CHARACTERS = '456789bcdf';
const HASH_CHARACTERS_IN_NAME = 5;

/**
 * Hash of a template as the value of label `machine-template-hash`: decimal, 32 bits, FNV-1a over the template as JSON with
 * sorted keys. It only has to be deterministic; whether a set has a template is decided by comparing the templates.
 * A taken name is avoided by another `collisionCount`, which is hashed as 8 bytes, little endian.
 */
export function templateHash(template: MachineTemplateSpec, collisionCount: number | null | undefined): string {
  let hash = fnv1a(FNV_OFFSET, Buffer.from(JSON.stringify(sorted(template))));
  if (collisionCount !== undefined && collisionCount !== null) {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(collisionCount >>> 0);
    hash = fnv1a(hash, bytes);
  }
  return hash.toString();
}

export function hashInName(hash: string): string {
  return hash.slice(0, HASH_CHARACTERS_IN_NAME).replace(/\d/g, (digit) => NAME_CHARACTERS[Number(digit)] ?? digit);
}

function fnv1a(start: number, bytes: Uint8Array): number {
  let hash = start;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0;
  return hash;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
