import { CLUSTER_API_GROUP } from './keys.ts';

/** A reference to an object of a provider, or to a template: of which version it is follows from its definition. */
export interface ContractReference {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
  /** In which version it was named; only the older dialect of Cluster API tells it. */
  readonly version?: string;
}

/** The contracts between Cluster API and its providers that are understood, the newer one first. */
export const CONTRACTS = ['v1beta2', 'v1beta1'] as const;

/** Which fields a provider reports in; see https://cluster-api.sigs.k8s.io/developer/providers/contracts. */
export type ContractVersion = (typeof CONTRACTS)[number];

export interface Contract {
  readonly contract: ContractVersion;
  /** Version of the API, which has nothing to do with that of the contract. */
  readonly version: string;
}

/** `v1`, `v1beta2`, `v1alpha1`. */
const KUBE_VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;
const MATURITY = { alpha: 1, beta: 2, stable: 3 } as const;

/** Plural name of a kind, which the contract fixes. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(name)) return `${name}es`;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

export function definitionNameOf({ apiGroup, kind }: Omit<ContractReference, 'name'>): string {
  return `${pluralOf(kind)}.${apiGroup}`;
}

/** How the objects of a kind are read, by the labels of its definition; undefined: it follows no contract that is understood. */
export function contractOf(labels: Readonly<Record<string, string>> | undefined): Contract | undefined {
  for (const contract of CONTRACTS) {
    const versions = (labels?.[contractLabel(contract)] ?? '').split('_').filter((version) => version !== '');
    const [version] = versions.toSorted(newestFirst);
    if (version !== undefined) return { contract, version };
  }
  return undefined;
}

/** On definitions: which versions of the kind follow a contract, `v1beta1_v1beta2`. */
export function contractLabel(contract: ContractVersion): string {
  return `${CLUSTER_API_GROUP}/${contract}`;
}

/** As Kubernetes sorts versions: stable before beta before alpha, the higher number first; what is none of these comes last, by name. */
function newestFirst(a: string, b: string): number {
  const [ranksOfA, ranksOfB] = [ranksOf(a), ranksOf(b)];
  if (ranksOfA === undefined || ranksOfB === undefined) {
    if (ranksOfA !== undefined) return -1;
    if (ranksOfB !== undefined) return 1;
    return a < b ? -1 : 1;
  }
  const differing = ranksOfA.findIndex((rank, i) => rank !== ranksOfB[i]);
  return differing === -1 ? 0 : (ranksOfB[differing] ?? 0) - (ranksOfA[differing] ?? 0);
}

function ranksOf(version: string): readonly number[] | undefined {
  const [whole, major, maturity, minor] = KUBE_VERSION.exec(version) ?? [];
  if (whole === undefined) return undefined;
  const rank = maturity === 'alpha' || maturity === 'beta' ? MATURITY[maturity] : MATURITY.stable;
  return [rank, Number(major), Number(minor ?? 0)];
}
