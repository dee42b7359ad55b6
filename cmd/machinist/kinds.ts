import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { machineClasses, machineDeployments, machines, machineSets, nodes } from '../../pkg/kube/client/resource.ts';

/** A kind of objects by the names under which kubectl and this program know it. */
export interface KindName {
  /** What this program calls it. */
  readonly name: string;
  readonly resource: Resource<KubeObject>;
  /** In lower case, of one object. */
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** Names that hold without the group; of two kinds called Machine only one is meant by that word. */
  readonly aliases: readonly string[];
}

export const MACHINE_DEPLOYMENT = ours(machineDeployments, 'mcd');
export const MACHINE_SET = ours(machineSets, 'mcs');
export const MACHINE = ours(machines, 'mc');
export const MACHINE_CLASS = ours(machineClasses, 'mcc');
export const NODE = ours(nodes, 'no');

function ours(resource: Resource<KubeObject>, shortName: string): KindName {
  const singular = resource.kind.toLowerCase();
  return {
    name: singular,
    resource,
    singular,
    shortNames: [shortName],
    aliases: [singular, resource.plural, shortName],
  };
}

/** A kind of another API, such as `ironcore-machine`. */
export function ofWorld(api: string, resource: Resource<KubeObject>): KindName {
  const singular = resource.kind.toLowerCase();
  const name = `${api}-${singular}`;
  return { name, resource, singular, shortNames: [], aliases: [name, `${api}-${resource.plural}`] };
}

/** Whether a typed word means the kind: by an alias, or with the group, and with or without the version, as in `machine.machine.sapcloud.io`. */
export function isNameOf({ resource, singular, shortNames, aliases }: KindName, word: string): boolean {
  const typed = word.toLowerCase();
  if (aliases.includes(typed)) return true;
  const [first = '', ...rest] = typed.split('.');
  const qualifier = rest.join('.').replace(/^v\d\w*\./, '');
  return qualifier === resource.group && [singular, resource.plural, ...shortNames].includes(first);
}

/** An object as `kubectl get -o name` prints it. */
export function objectName({ singular, resource: { group } }: KindName, name: string): string {
  return group === '' ? `${singular}/${name}` : `${singular}.${group}/${name}`;
}
