import type { KubeObject } from '../../../apis/meta.ts';
import { isVMOf, type MachineIdentity, type TaggedVM } from '../../../drivers/machine-identity.ts';

const PREFIX = 'ironcore.machine.sapcloud.io/';
/** Namespace of the Machine of Machinist. Objects with this label were created by this driver. */
export const IRONCORE_NAMESPACE_LABEL = `${PREFIX}namespace`;
/** UID of the Machine of Machinist. */
export const IRONCORE_MACHINE_UID_LABEL = `${PREFIX}machine-uid`;
/** Identity of the control cluster. */
export const IRONCORE_CLUSTER_ANNOTATION = `${PREFIX}cluster`;
/** Name of the MachineClass of Machinist. */
export const IRONCORE_CLASS_ANNOTATION = `${PREFIX}class`;

/** All that this driver sets on what it makes. */
export const TAGS = [
  IRONCORE_NAMESPACE_LABEL,
  IRONCORE_MACHINE_UID_LABEL,
  IRONCORE_CLUSTER_ANNOTATION,
  IRONCORE_CLASS_ANNOTATION,
] as const;

const FORM = 'ironcore://';

export function isTag(label: string): boolean {
  return label.startsWith(PREFIX);
}

/** The identity of a machine, as Gardener's provider writes it. */
export function ironCoreProviderID(namespace: string, name: string): string {
  return `${FORM}${namespace}/${name}`;
}

/** Where the Machine with a provider id is; undefined for one of another form. */
export function placeIn(providerID = ''): { readonly namespace: string; readonly name: string } | undefined {
  const [namespace = '', name = '', ...more] = providerID.startsWith(FORM)
    ? providerID.slice(FORM.length).split('/')
    : [];
  return namespace === '' || name === '' || more.length > 0 ? undefined : { namespace, name };
}

export function tagsOf(
  { cluster, namespace, uid }: MachineIdentity,
  className: string,
): { readonly labels: Record<string, string>; readonly annotations: Record<string, string> } {
  return {
    labels: {
      [IRONCORE_NAMESPACE_LABEL]: namespace,
      ...(uid === undefined ? {} : { [IRONCORE_MACHINE_UID_LABEL]: uid }),
    },
    annotations: { [IRONCORE_CLUSTER_ANNOTATION]: cluster, [IRONCORE_CLASS_ANNOTATION]: className },
  };
}

/** What an object says of itself. One without our tags, of an earlier provider, is of the machine of its name, in whatever namespace. */
export function machineTagsOf({ metadata }: Pick<KubeObject, 'metadata'>): TaggedVM {
  const { labels = {}, annotations = {}, name, namespace: at = '' } = metadata;
  return {
    providerID: ironCoreProviderID(at, name),
    cluster: annotations[IRONCORE_CLUSTER_ANNOTATION] ?? '',
    namespace: labels[IRONCORE_NAMESPACE_LABEL] ?? '',
    className: annotations[IRONCORE_CLASS_ANNOTATION] ?? '',
    machineName: name,
    machineUID: labels[IRONCORE_MACHINE_UID_LABEL],
  };
}

export function isTagged({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.labels?.[IRONCORE_NAMESPACE_LABEL] !== undefined;
}

/**
 * Whether an object is that of a machine. One without our tags is it if the Machine has recorded its provider id, or if it carries the
 * labels of its class, as the earlier provider set them: the name alone may be anybody's.
 */
export function isOf(
  object: Pick<KubeObject, 'metadata'>,
  machine: MachineIdentity,
  labels: Readonly<Record<string, string>>,
): boolean {
  const vm = machineTagsOf(object);
  if (!isVMOf(vm, machine)) return false;
  return isTagged(object) || vm.providerID === machine.providerID || carries(object, labels);
}

/** Whether an object has all of these labels; none are no sign of anything. */
export function carries({ metadata }: Pick<KubeObject, 'metadata'>, labels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(labels);
  return wanted.length > 0 && wanted.every(([key, value]) => metadata.labels?.[key] === value);
}
