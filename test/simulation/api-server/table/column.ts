import { at, type Members } from '../json.ts';
import { shownAge } from './age.ts';
import { jsonPathOf } from './json-path.ts';

/** One column of a table. */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  /** Others than 0 are shown by `-o wide` alone. */
  readonly priority?: number;
  /** Null or undefined: there is nothing to show. */
  readonly cell: (object: Members, nowMs: number) => unknown;
}

/** A column as CustomResourceDefinitions have it. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  readonly format?: string;
  readonly priority?: number;
}

export const NAME: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  cell: (object) => at(object, ['metadata', 'name']),
};

/** How long ago what a path names was. */
export function ageOf(object: Members, path: readonly string[], nowMs: number): string {
  return ageSince(at(object, path), nowMs);
}

function ageSince(time: unknown, nowMs: number): string {
  return typeof time === 'string' ? shownAge(nowMs - Date.parse(time)) : '<unknown>';
}

export const AGE: Column = {
  name: 'Age',
  type: 'string',
  cell: (object, nowMs) => ageOf(object, ['metadata', 'creationTimestamp'], nowMs),
};

/** The columns of a kind that a definition adds. Throws for a path that jsonPathOf does not know. */
export function customColumns(columns: readonly PrinterColumn[] | undefined): readonly Column[] {
  if (columns === undefined) return [NAME, { ...AGE, type: 'date' }];
  return [NAME, ...columns.map(customColumn)];
}

function customColumn({ jsonPath, ...column }: PrinterColumn): Column {
  const valueOf = jsonPathOf(jsonPath);
  return {
    description: `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    ...column,
    cell: (object, nowMs) => cellOf(column.type, valueOf(object), nowMs),
  };
}

function cellOf(type: PrinterColumn['type'], value: unknown, nowMs: number): unknown {
  if (value === undefined || value === null) return undefined;
  switch (type) {
    case 'date':
      return ageSince(value, nowMs);
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    default:
      return typeof value === 'number' ? value : undefined;
  }
}
