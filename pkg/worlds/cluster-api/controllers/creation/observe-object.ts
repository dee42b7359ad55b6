import { isDeepStrictEqual } from 'node:util';

import type { ContractReference } from '../../api/contract.ts';
import { CLUSTER_NAME_LABEL } from '../../api/keys.ts';
import type { ClusterAPIMachine } from '../../api/machine.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../../../apis/meta.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../../../kube/client/patch.ts';
import { clusterAPIMachines } from '../../api/resources.ts';
import type { External } from '../externals.ts';
import type { MachinePass, StepDeps } from '../machine-pass.ts';
import { adoptionOf } from '../adoption.ts';
import type { ObservedObject } from '../observed.ts';

export type ObserveDeps = Pick<StepDeps, 'externals' | 'servedAs' | 'writer'>;

type Read<Report> = (object: External['object'], contract: External['contract']) => Report;

/** Finds an object that a Machine names, and reads what it says. */
export function see<Report>(
  { externals, servedAs }: Pick<StepDeps, 'externals' | 'servedAs'>,
  machine: ClusterAPIMachine,
  reference: ContractReference | undefined,
  read: Read<Report>,
): ObservedObject<Report> {
  if (reference === undefined) return { kind: 'none' };
  const found = externals.find(machine, reference);
  if (found.kind !== 'found') return found;
  const ownership = adoptionOf(found.object, machine, servedAs(clusterAPIMachines));
  if ('foreign' in ownership) {
    const { kind, name } = ownership.foreign;
    const problem = `${reference.kind} ${reference.name} belongs to ${kind} ${name}: refer to another object in the Machine`;
    return { kind: 'foreign', problem };
  }
  return { kind: 'found', external: found, report: read(found.object, found.contract) };
}

/** The same of the Machine of a pass, which becomes the owner of the object. */
export async function observeObject<Report>(
  deps: ObserveDeps,
  pass: MachinePass,
  reference: ContractReference | undefined,
  read: Read<Report>,
): Promise<ObservedObject<Report>> {
  const seen = see(deps, pass.machine, reference, read);
  if (seen.kind !== 'found' || isBeingDeleted(pass.machine)) return seen;
  const external = await own(deps, pass, seen.external);
  return { kind: 'found', external, report: read(external.object, external.contract) };
}

/** Makes the Machine the one owner of the object, with the label of its Cluster. */
async function own(
  { writer, servedAs }: Pick<StepDeps, 'writer' | 'servedAs'>,
  { machine, signal }: MachinePass,
  external: External,
): Promise<External> {
  const { object, resource } = external;
  const ownership = adoptionOf(object, machine, servedAs(clusterAPIMachines));
  if ('foreign' in ownership) return external;
  const { references } = ownership;
  const { labels = {}, ownerReferences = [] } = object.metadata;
  const clusterName = machine.spec.clusterName ?? '';
  const isOwned = isDeepStrictEqual(new Set(ownerReferences), new Set(references));
  if (isBeingDeleted(object) || (isOwned && labels[CLUSTER_NAME_LABEL] === clusterName)) return external;
  const change: MergePatch<KubeObject> = {
    metadata: {
      labels: { [CLUSTER_NAME_LABEL]: clusterName },
      ...(!isOwned && { ownerReferences: references }),
    },
  };
  const patch = mergePatchIfUnchanged(object, change);
  return { ...external, object: await writer.patch('change', resource, refOf(object), patch, { signal }) };
}
