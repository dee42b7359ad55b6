import { MAX_REPLICAS } from '../apis/machine/v1alpha1/defaults.ts';
import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted, keyOf } from '../apis/meta.ts';
import type { Lister } from '../kube/cache/lister.ts';
import type { GroupLimits } from '../operator/config/autoscaler.ts';

/** A MachineDeployment that an autoscaler may scale. */
export interface NodeGroup extends GroupLimits {
  /** What the autoscaler calls it: the name, since one namespace is served. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
}

/** What is wrong with the limits of a MachineDeployment, and how to put it right. Nothing scales it meanwhile. */
interface GroupFault {
  readonly fault: string;
}

export interface NodeGroupsOptions {
  readonly deployments: Lister<MachineDeployment>;
  readonly namespace: string;
  /** Of flag `--nodes`, by name; they count more than annotations. */
  readonly listed: ReadonlyMap<string, GroupLimits>;
}

const KEYS = `annotations ${NODE_GROUP_MIN_ANNOTATION} and ${NODE_GROUP_MAX_ANNOTATION}`;

/**
 * The node groups: MachineDeployments of one namespace with limits, from flag `--nodes` or from their annotations. One that does not exist, is being
 * deleted, has no spec, or has a maximum of 0 is none. Read from the cache each time, so nothing is ever stale.
 */
export class NodeGroups {
  readonly #options: NodeGroupsOptions;

  constructor(options: NodeGroupsOptions) {
    this.#options = options;
  }

  /** All of them, by id. */
  list(): readonly NodeGroup[] {
    const groups = this.#options.deployments.list().map((deployment) => this.of(deployment));
    return groups.filter((group) => group !== undefined).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  get(id: string): NodeGroup | undefined {
    const deployment = this.#deployment(id);
    return deployment && this.of(deployment);
  }

  /** The group that a MachineDeployment is; undefined when it is none. */
  of(deployment: MachineDeployment): NodeGroup | undefined {
    const found = groupOf(deployment, this.#options.listed);
    return found === undefined || isFault(found) ? undefined : found;
  }

  /** What keeps a MachineDeployment that is meant to be a group from being one. */
  faultOf(deployment: MachineDeployment): string | undefined {
    const found = groupOf(deployment, this.#options.listed);
    return found !== undefined && isFault(found) ? found.fault : undefined;
  }

  /** MachineDeployments that flag `--nodes` names and that do not exist. */
  missing(): readonly string[] {
    return [...this.#options.listed.keys()].filter((name) => this.#deployment(name) === undefined);
  }

  /** Why there is no group of this id, and what to do for one. */
  whyNot(id: string): string {
    const deployment = this.#deployment(id);
    const what = `MachineDeployment ${keyOf({ metadata: { namespace: this.#options.namespace, name: id } })}`;
    if (deployment === undefined) return `${what} does not exist`;
    if (isBeingDeleted(deployment)) return `${what} is being deleted`;
    const fault = this.faultOf(deployment);
    if (fault !== undefined) return `${what}: ${fault}`;
    return `${what} has no limits, or a maximum of 0; set ${KEYS}, or list it in --nodes`;
  }

  #deployment(name: string): MachineDeployment | undefined {
    const { deployments, namespace } = this.#options;
    return deployments.get(keyOf({ metadata: { namespace, name } }));
  }
}

/** What a MachineDeployment is to an autoscaler: a group, a fault of its annotations, or nothing. */
function groupOf(
  deployment: MachineDeployment,
  listed: ReadonlyMap<string, GroupLimits>,
): NodeGroup | GroupFault | undefined {
  const { name, namespace = '', annotations = {} } = deployment.metadata;
  if (isBeingDeleted(deployment)) return undefined;
  const limits = listed.get(name) ?? limitsIn(annotations);
  if (limits === undefined) return undefined;
  if (typeof limits === 'string') return { fault: `${KEYS}: ${limits}` };
  const { spec }: { readonly spec?: unknown } = deployment;
  if (spec === undefined) return { fault: 'spec is missing; set it' };
  return limits.max === 0 ? undefined : { id: name, namespace, name, ...limits };
}

/** The limits that annotations say; a text says what is wrong with them. */
function limitsIn(annotations: Readonly<Record<string, string>>): GroupLimits | string | undefined {
  const [min, max] = [annotations[NODE_GROUP_MIN_ANNOTATION], annotations[NODE_GROUP_MAX_ANNOTATION]];
  if (min === undefined && max === undefined) return undefined;
  if (min === undefined || max === undefined)
    return `${min === undefined ? 'the first' : 'the second'} is missing; set both, or remove both`;
  for (const value of [min, max]) {
    if (!isCount(value))
      return `${JSON.stringify(value)} is not valid; must be a whole number from 0 to ${MAX_REPLICAS}`;
  }
  if (Number(min) > Number(max))
    return `the minimum ${min} is greater than the maximum ${max}; raise one or lower the other`;
  return { min: Number(min), max: Number(max) };
}

/** Whether a text is a number of Machines, as `spec.replicas` can hold it. */
function isCount(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) <= MAX_REPLICAS;
}

function isFault(found: NodeGroup | GroupFault): found is GroupFault {
  return 'fault' in found;
}
