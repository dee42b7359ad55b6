import type { CallOptions } from './client.ts';
import type { Transport } from './transport.ts';

/** Published schemas of a group version, by kind; how deep they are understood is up to the reader. */
export type PublishedSchemas = ReadonlyMap<string, unknown>;

/** What an API server publishes of a group version: which fields it stores. A read that is granted to everybody. Throws ApiError. */
export async function readSchemas(
  transport: Transport,
  { group, version }: { group: string; version: string },
  options: CallOptions = {},
): Promise<PublishedSchemas> {
  const path = `/openapi/v3/apis/${group}/${version}`;
  const answer = await transport.request<{ components?: { schemas?: Record<string, unknown> } } | undefined>({
    method: 'GET',
    verb: 'get',
    lane: 'probes',
    address: { path, template: path, label: 'openapi' },
    ...options,
  });
  const schemas = Object.values(answer?.components?.schemas ?? {});
  return new Map(schemas.flatMap((schema) => kindsOf(schema).map((kind) => [kind, schema] as const)));
}

function kindsOf(schema: unknown): string[] {
  const kinds = (schema as { 'x-kubernetes-group-version-kind'?: unknown } | null)?.['x-kubernetes-group-version-kind'];
  return Array.isArray(kinds) ? kinds.map(({ kind }: { kind?: unknown }) => String(kind)) : [];
}
