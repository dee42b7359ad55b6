import type { Schema } from '../../hack/generate/crds/schema.ts';

/** Paths that the schema names and the object lacks; lists are judged by their first item. */
export function missingFields(properties: Record<string, Schema>, object: unknown, at: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const value = (object as Record<string, unknown> | undefined)?.[name];
    const below = `${at}.${name}`;
    if (value === undefined) return [below];
    const item = schema.items === undefined ? value : (value as unknown[])[0];
    return missingFields((schema.items ?? schema).properties ?? {}, item, below);
  });
}
