import type { ContractReference } from '../api/contract.ts';
import { CLUSTER_API_GROUP, CLUSTER_API_REVISION_ANNOTATION } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { ExternalLookup } from './externals.ts';

export type FindExternal = (reference: ContractReference) => ExternalLookup;

/**
 * The MachineSet that owns a Machine, and the MachineDeployment that owns this one, as far as they are known: nobody here looks after them, but
 * their revisions count. None of a Machine without such an owner.
 */
export function revisionOwnersOf(machine: KubeObject, find: FindExternal): readonly ContractReference[] {
  const set = ownerOf(machine, 'MachineSet');
  const found = set === undefined ? undefined : find(set);
  const deployment = found?.kind === 'found' ? ownerOf(found.object, 'MachineDeployment') : undefined;
  return [set, deployment].filter((one) => one !== undefined);
}

/**
 * Whether a Machine is of an older revision than its MachineDeployment; without both of its owners it is not. Undefined: they cannot be read, or
 * do not say it in numbers.
 */
export function isOutdated(machine: KubeObject, find: FindExternal): boolean | undefined {
  const set = ownerOf(machine, 'MachineSet');
  const foundSet = set === undefined ? undefined : find(set);
  if (foundSet === undefined || foundSet.kind === 'absent') return false;
  if (foundSet.kind !== 'found') return undefined;
  const deployment = ownerOf(foundSet.object, 'MachineDeployment');
  const foundDeployment = deployment === undefined ? undefined : find(deployment);
  if (foundDeployment === undefined || foundDeployment.kind === 'absent') return false;
  if (foundDeployment.kind !== 'found') return undefined;
  const [ofSet, ofDeployment] = [foundSet, foundDeployment].map(({ object }) => revisionOf(object));
  return ofSet === undefined || ofDeployment === undefined ? undefined : ofSet < ofDeployment;
}

/** Both of them; undefined: there are not both, or they cannot be read. */
export function revisionOwnersIn(
  machine: KubeObject,
  find: FindExternal,
): { readonly set: KubeObject; readonly deployment: KubeObject } | undefined {
  const [set, deployment] = revisionOwnersOf(machine, find).map(find);
  return set?.kind === 'found' && deployment?.kind === 'found'
    ? { set: set.object, deployment: deployment.object }
    : undefined;
}

function ownerOf({ metadata }: KubeObject, kind: string): ContractReference | undefined {
  const owner = metadata.ownerReferences?.find(
    (one) => one.kind === kind && one.apiVersion.split('/')[0] === CLUSTER_API_GROUP,
  );
  return owner === undefined ? undefined : { apiGroup: CLUSTER_API_GROUP, kind, name: owner.name };
}

/** As in Cluster API, one that was never counted is 0. */
function revisionOf({ metadata }: KubeObject): number | undefined {
  const text = metadata.annotations?.[CLUSTER_API_REVISION_ANNOTATION] ?? '0';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
