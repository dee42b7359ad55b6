import type { ClusterAPIMachineStatus } from '../api/machine.ts';

/** Kinds of addresses that are names of Nodes, the surest first. */
const NAMES = ['Hostname', 'InternalDNS'] as const;

/**
 * The name under which a machine joins: that of the Node that has its provider ID, which Cluster API has found; before it is there, what
 * the provider tells, else the Machine's own.
 */
export function expectedNodeName(status: ClusterAPIMachineStatus | undefined, machineName: string): string {
  const { nodeRef, addresses = [] } = status ?? {};
  if (nodeRef !== undefined) return nodeRef.name;
  const told = NAMES.map((kind) => addresses.find(({ type }) => type === kind)?.address);
  return told.find((name) => name !== undefined) ?? machineName;
}
