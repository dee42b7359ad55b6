import { COMPUTE_GROUP } from '../../pkg/worlds/ironcore/api/group.ts';
import { CLUSTER_API_GROUP } from '../../pkg/worlds/cluster-api/api/keys.ts';
import { GROUP } from '../../pkg/apis/machine/v1alpha1/group.ts';

/** A kind of objects by the names under which kubectl and this program know it. */
export interface KindName {
  /** What this program calls it. */
  readonly name: string;
  /** In lower case, of one object and of several. */
  readonly singular: string;
  readonly plural: string;
  readonly group: string;
  readonly shortNames: readonly string[];
  /** Names that hold without the group; of two kinds called Machine only one is meant by that word. */
  readonly aliases: readonly string[];
}

export const MACHINE_DEPLOYMENT = ours('machinedeployment', 'mcd');
export const MACHINE_SET = ours('machineset', 'mcs');
export const MACHINE = ours('machine', 'mc');
export const MACHINE_CLASS = ours('machineclass', 'mcc', 'machineclasses');
export const NODE: KindName = { ...ours('node', 'no'), group: '' };
export const CLUSTER_API_MACHINE = ofWorld('cluster-api-machine', 'machine', CLUSTER_API_GROUP);
export const CLUSTER_API_CLUSTER = ofWorld('cluster-api-cluster', 'cluster', CLUSTER_API_GROUP);
export const IRONCORE_MACHINE = ofWorld('ironcore-machine', 'machine', COMPUTE_GROUP);

function ours(singular: string, shortName: string, plural = `${singular}s`): KindName {
  const shortNames = [shortName];
  return { name: singular, singular, plural, group: GROUP, shortNames, aliases: [singular, plural, shortName] };
}

function ofWorld(name: string, singular: string, group: string): KindName {
  return { name, singular, plural: `${singular}s`, group, shortNames: [], aliases: [name, `${name}s`] };
}

/** Whether a typed word means the kind: by an alias, or with the group, and with or without the version, as in `machine.machine.sapcloud.io`. */
export function isNameOf({ singular, plural, group, shortNames, aliases }: KindName, word: string): boolean {
  const typed = word.toLowerCase();
  if (aliases.includes(typed)) return true;
  const [first = '', ...rest] = typed.split('.');
  const qualifier = rest.join('.').replace(/^v\d\w*\./, '');
  return qualifier === group && [singular, plural, ...shortNames].includes(first);
}

/** An object as `kubectl get -o name` prints it. */
export function objectName({ singular, group }: KindName, name: string): string {
  return group === '' ? `${singular}/${name}` : `${singular}.${group}/${name}`;
}
