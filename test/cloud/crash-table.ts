import type { Table } from '../../hack/test/sample.ts';
import { type Point, POINTS } from './crash-point.ts';

/** One mutation of a life, and what goes wrong at it. */
export interface CrashRow {
  readonly n: number;
  readonly point: Point;
  /** As `PATCH machines`. */
  readonly kind: string;
}

/**
 * Everything that can go wrong in a life with these mutations, which are those of one without a fault. A sample has each point and, with
 * `kinds`, each kind of mutation.
 */
export function crashTable(
  name: string,
  texts: readonly string[],
  { least, kinds = false }: { readonly least: number; readonly kinds?: boolean },
): Table<CrashRow> {
  return {
    name,
    rows: POINTS.flatMap((point) => texts.map((text, i) => ({ n: i + 1, point, kind: kindOf(text) }))),
    nameOf: ({ n, point, kind }) => `${point} ${n}: ${kind}`,
    kindsOf: ({ point, kind }) => (kinds ? [point, kind] : [point]),
    least,
  };
}

function kindOf(text: string): string {
  return text.split(' ').slice(0, 2).join(' ');
}
