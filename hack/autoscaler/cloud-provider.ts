import type { Node } from '../../pkg/apis/wire.ts';

/** A node group as the server lists it. */
export interface Group {
  readonly id: string;
  readonly minSize: number;
  readonly maxSize: number;
}

/** What identifies a node in a call. A placeholder is a node of which only the id is known. */
export interface NodeRef {
  readonly name: string;
  readonly providerID: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** An instance of a group, whether it has a Node or not. */
export interface Instance {
  readonly id: string;
  /** Undefined: the server did not say. */
  readonly state: 'running' | 'creating' | 'deleting' | undefined;
  /** Why it could not be created. */
  readonly error: { readonly code: string; readonly message: string; readonly outOfResources: boolean } | undefined;
}

/** Options of a group; durations in ms. */
export interface GroupOptions {
  readonly scaleDownUtilizationThreshold: number;
  readonly scaleDownUnneededMs: number;
  readonly maxNodeProvisionMs: number;
}

/** The autoscaler's view of a cloud, as its own interface of that name. Every call rejects with what the server answered. */
export interface CloudProvider {
  refresh(): Promise<void>;
  nodeGroups(): Promise<readonly Group[]>;
  nodeGroupForNode(node: NodeRef): Promise<Group | undefined>;
  targetSize(group: string): Promise<number>;
  increaseSize(group: string, delta: number): Promise<void>;
  deleteNodes(group: string, nodes: readonly NodeRef[]): Promise<void>;
  decreaseTargetSize(group: string, delta: number): Promise<void>;
  nodes(group: string): Promise<readonly Instance[]>;
  /** Undefined when the server knows none. */
  template(group: string): Promise<Node | undefined>;
  /** The defaults when the server has no others. */
  options(group: string, defaults: GroupOptions): Promise<GroupOptions>;
}

/** The reference that the autoscaler makes of a Node. */
export function refOf({ metadata, spec }: Node): NodeRef {
  const { name, labels = {}, annotations = {} } = metadata;
  return { name, providerID: spec?.providerID ?? '', labels, annotations };
}

/** The node that the autoscaler makes up for an instance without one. */
export function placeholder(id: string): NodeRef {
  const annotations = { 'k8s.io/cluster-autoscaler/fake-node-reason': 'unregistered' };
  return { name: id, providerID: id, labels: {}, annotations };
}
