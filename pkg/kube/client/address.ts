import type { KubeObject } from '../../apis/meta.ts';
import { pathOf } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';

/** Where a request goes, as the wire, the metrics and the request counts want it. */
export interface Address {
  readonly path: string;
  /** The path with namespace and name left open, spelled as client-go's metrics spell it. */
  readonly template: string;
  /** Plural of the resource, with the subresource after a slash: `pods/eviction`. */
  readonly label: string;
}

/** Address of a collection, or of one object, or of its subresource. */
export function addressOf(
  resource: Resource<KubeObject>,
  at: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined },
): Address {
  const { namespace, name, subresource } = at;
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace ? '/namespaces/%7Bnamespace%7D' : '';
  const below = `${name === undefined ? '' : '/%7Bname%7D'}${subresource === undefined ? '' : `/${subresource}`}`;
  return {
    path: pathOf(resource, namespace, name, subresource),
    template: `${root}${scope}/${resource.plural}${below}`,
    label: subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`,
  };
}

/** `?a=1&b=2` of the members that are defined; '' when none is. */
export function queryOf(members: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined && value !== '') parts.push(`${name}=${encodeURIComponent(String(value))}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}
