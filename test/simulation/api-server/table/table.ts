import type { Members } from '../json.ts';
import type { Kind } from '../kinds.ts';

/** What a table is made from. */
export interface TableContent {
  readonly kind: Kind;
  readonly items: readonly Members[];
  readonly metadata: Members;
  /** What comes with a row. */
  readonly objectOf: (object: Members) => Members | null;
  readonly nowMs: number;
}

/** A `Table` of meta.k8s.io/v1, as `kubectl get` asks for. */
export function tableOf({ kind, items, metadata, objectOf, nowMs }: TableContent): Members {
  const { columns } = kind;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns.map(({ name, type, format = '', description = '', priority = 0 }) => ({
      name,
      type,
      format,
      description,
      priority,
    })),
    rows: items.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, nowMs) ?? null),
      object: objectOf(object),
    })),
  };
}
