import { contractOf, definitionNameOf, pluralOf, type Contract, type ContractReference } from '../api/contract.ts';
import { BOOTSTRAP_GROUP, INFRASTRUCTURE_GROUP } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { providerResource } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';

export interface ServedKind {
  readonly resource: Resource<KubeObject>;
  readonly contract: Contract['contract'];
}

/** A kind, as its definition says. missing: there can be no objects of it. unclear: there may be, and nobody can say of which version. */
export type KindLookup =
  | ({ readonly kind: 'served' } & ServedKind)
  | { readonly kind: 'missing' | 'unclear'; readonly problem: string };

/** Templates are cloned, and are nobody's clones. */
const TEMPLATES = /templates$/;

/** Cluster API's own kinds, whose definitions have these labels too: in groups under this one, but for those of providers. */
const OWN = /(^|[.])cluster[.]x-k8s[.]io$/;
const OF_PROVIDERS: ReadonlySet<string> = new Set([INFRASTRUCTURE_GROUP, BOOTSTRAP_GROUP]);

/**
 * How objects of a definition are read, whose kind its metadata does not say; undefined for templates and Cluster API's own kinds, and where
 * it follows no contract.
 */
export function kindOfDefinition({ metadata: { name, labels } }: KubeObject): ServedKind | undefined {
  const contract = contractOf(labels);
  const [plural = '', ...rest] = name.split('.');
  const group = rest.join('.');
  if (contract === undefined || TEMPLATES.test(plural) || (OWN.test(group) && !OF_PROVIDERS.has(group)))
    return undefined;
  const resource = providerResource({ group, version: contract.version, plural, kind: plural });
  return { resource, contract: contract.contract };
}

/** How objects of a kind are read, by the metadata of its definition; undefined: there is none. */
export function kindBy(
  definition: KubeObject | undefined,
  { apiGroup: group, kind }: Omit<ContractReference, 'name'>,
): KindLookup {
  const name = definitionNameOf({ apiGroup: group, kind });
  if (definition === undefined) {
    const problem = `CustomResourceDefinition ${name} does not exist: install the provider, or correct the reference`;
    return { kind: 'missing', problem };
  }
  const contract = contractOf(definition.metadata.labels);
  if (contract === undefined) {
    const problem = `CustomResourceDefinition ${name} has no label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1: install a provider that follows one of these contracts`;
    return { kind: 'unclear', problem };
  }
  const resource = providerResource({ group, version: contract.version, plural: pluralOf(kind), kind });
  return { kind: 'served', resource, contract: contract.contract };
}
