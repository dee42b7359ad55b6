import { bootstrapSecret } from '../api/bootstrap-secret.ts';
import { cloneOf, type Clone, type CloneProblem, type Template } from '../api/clone.ts';
import { definitionNameOf, type ContractReference } from '../api/contract.ts';
import { CLUSTER_NAME_LABEL, DELETION_HOOK, EXCLUDE_DETACH_ANNOTATION, EXCLUDE_DRAIN_ANNOTATION } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Secret } from '../../../apis/wire.ts';
import type { New } from '../../../kube/client/client.ts';
import { marked, type Marks } from './marks.ts';
import type { ClusterAPIProviderSpec } from './provider-spec.ts';

export interface Plan {
  readonly namespace: string;
  readonly marks: Marks;
  readonly spec: ClusterAPIProviderSpec;
}

const SUFFIX = 'Template';

export function userDataSecretName(machineName: string): string {
  return `${machineName}-userdata`;
}

/** What is made of a template; it has the Machine's name. */
export function clonedFrom({ apiGroup, kind }: ContractReference, machineName: string): ContractReference {
  return { apiGroup, kind: kind.slice(0, -SUFFIX.length), name: machineName };
}

/** The Secret with the user data of a machine, for an infrastructure provider. */
export function userDataSecret({ namespace, marks, spec }: Plan, userData: string): New<Secret> {
  const name = userDataSecretName(marks.machineName);
  const place = { name, namespace, clusterName: spec.clusterName };
  const secret = bootstrapSecret(place, { value: Buffer.from(userData), format: formatOf(userData) });
  const { labels, annotations } = marked(marks);
  return { ...secret, metadata: { ...secret.metadata, labels: { ...secret.metadata.labels, ...labels }, annotations } };
}

/** An object of a provider, made of a template; or what is wrong with the template. */
export function cloned({ marks, spec }: Plan, template: Template): Clone | CloneProblem {
  const { labels, annotations } = marked(marks);
  return cloneOf(template, {
    name: marks.machineName,
    clusterName: spec.clusterName,
    // As the sets of Cluster API have it: what is on the Machine is on what is made for it.
    labels: { ...spec.labels, ...labels },
    annotations: { ...spec.annotations, ...annotations },
  });
}

/**
 * The Machine of Cluster API. Its Node is drained by the manager, which knows more about it, before this Machine is deleted; until then a hook
 * keeps whoever deletes it from taking the VM along. `versions`: of the kinds that it names, by name of their definitions.
 */
export function clusterAPIMachineOf(
  { namespace, marks, spec }: Plan,
  versions: ReadonlyMap<string, string> = new Map(),
): New<ClusterAPIMachine> {
  const dated = (reference: ContractReference): ContractReference => {
    const of = versions.get(definitionNameOf(reference));
    return of === undefined ? reference : { ...reference, version: of };
  };
  const { labels, annotations } = marked(marks);
  const { clusterName, infrastructureRef, version, failureDomain } = spec;
  return {
    metadata: {
      name: marks.machineName,
      namespace,
      labels: { ...spec.labels, ...labels, [CLUSTER_NAME_LABEL]: clusterName },
      annotations: {
        ...spec.annotations,
        ...annotations,
        [EXCLUDE_DRAIN_ANNOTATION]: '',
        [EXCLUDE_DETACH_ANNOTATION]: '',
        [DELETION_HOOK]: '',
      },
    },
    spec: {
      clusterName,
      bootstrap: bootstrapOf(spec, marks.machineName, dated),
      infrastructureRef: dated(clonedFrom(infrastructureRef, marks.machineName)),
      ...(version !== undefined && { version }),
      ...(failureDomain !== undefined && { failureDomain }),
    },
  };
}

function bootstrapOf(
  { bootstrap }: ClusterAPIProviderSpec,
  machineName: string,
  dated: (reference: ContractReference) => ContractReference,
): { configRef: ContractReference } | { dataSecretName: string } {
  switch (bootstrap.from) {
    case 'template':
      return { configRef: dated(clonedFrom(bootstrap.template, machineName)) };
    case 'secret':
      return { dataSecretName: bootstrap.name };
    case 'userData':
      return { dataSecretName: userDataSecretName(machineName) };
  }
}

/** Ignition is JSON and says what it is; everything else is for cloud-init. */
function formatOf(userData: string): 'cloud-config' | 'ignition' {
  if (!userData.trimStart().startsWith('{')) return 'cloud-config';
  try {
    return 'ignition' in (JSON.parse(userData) as object) ? 'ignition' : 'cloud-config';
  } catch {
    return 'cloud-config';
  }
}
