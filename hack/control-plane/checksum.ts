/** What the bytes of a file must hash to. */
export interface Checksum {
  readonly algorithm: 'sha256' | 'sha512';
  /** In lower case. */
  readonly hex: string;
}

const ALGORITHMS: Readonly<Record<number, Checksum['algorithm']>> = { 64: 'sha256', 128: 'sha512' };

/** Reads `sha256:HEX`, `sha512:HEX` or HEX alone; undefined when it is none of these. */
export function parseChecksum(text: string): Checksum | undefined {
  const [, named, hex = ''] = /^(?:(sha256|sha512):)?([0-9a-f]+)$/i.exec(text.trim()) ?? [];
  const algorithm = ALGORITHMS[hex.length];
  if (algorithm === undefined || (named !== undefined && named.toLowerCase() !== algorithm)) return undefined;
  return { algorithm, hex: hex.toLowerCase() };
}

/** The checksum of a file in the output of sha256sum or sha512sum, or the only one in a file that has nothing else. */
export function checksumIn(index: string, name: string): Checksum | undefined {
  const lines = index.split('\n').filter((line) => line.trim() !== '');
  const own = lines.map((line) => line.trim().split(/\s+/)).filter(([, file]) => baseName(file) === name);
  const [alone] = lines;
  const hex =
    own[0]?.[0] ?? (lines.length === 1 && alone !== undefined && !/\s/.test(alone.trim()) ? alone : undefined);
  return hex === undefined ? undefined : parseChecksum(hex);
}

/** Names in the index: sha256sum marks binary files with a star, and find prints ./ in front. */
export function namesIn(index: string): readonly string[] {
  return index.split('\n').flatMap((line) => baseName(line.trim().split(/\s+/)[1]) ?? []);
}

function baseName(file: string | undefined): string | undefined {
  return file?.replace(/^\*/, '').split('/').at(-1);
}
