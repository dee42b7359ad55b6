import { type MachineIdentity, type TaggedVM, isVMOf } from '../machine-identity.ts';
import { marksIn, MARKS } from './provider-spec.ts';
import type { Server } from './server.ts';

/** Metadata that says whose a server is, beside the tags of the class. */
const KEYS = {
  cluster: 'machinist-cluster',
  namespace: 'machinist-namespace',
  className: 'machinist-class',
  uid: 'machinist-uid',
} as const;
const PROVIDER_ID = /^openstack:\/\/\/(?<region>[^/]*)\/(?<id>[^/]+)$/;
/** Nova's tags have at most so many characters, and neither slash nor comma. */
const TAG = /^[^/,]{1,60}$/;

/** The identity of a server, as Gardener's provider and the cloud controller manager write it. */
export function openStackProviderID(region: string, serverID: string): string {
  return `openstack:///${region}/${serverID}`;
}

/** Region and server of a provider ID; undefined for one of another form, which is no server's. */
export function parseProviderID(
  providerID: string | undefined,
): { readonly region: string; readonly id: string } | undefined {
  const { region, id } = PROVIDER_ID.exec(providerID ?? '')?.groups ?? {};
  return region === undefined || id === undefined ? undefined : { region, id };
}

/** Metadata of a machine's server: the tags of its class as they are, and ours. */
export function metadataOf(
  machine: MachineIdentity,
  className: string,
  tags: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    ...tags,
    [KEYS.cluster]: machine.cluster,
    [KEYS.namespace]: machine.namespace,
    [KEYS.className]: className,
    ...(machine.uid === undefined ? {} : { [KEYS.uid]: machine.uid }),
  };
}

/** The tag by which Nova finds the servers of a cluster; undefined for a cluster whose identity cannot be one. */
export function clusterTagOf(cluster: string): string | undefined {
  const tag = `machinist-${cluster}`;
  return TAG.test(tag) ? tag : undefined;
}

/** What a server says of itself. One without our metadata, of an earlier provider, is the machine's of its name, in whatever namespace. */
export function serverTagsOf({ id, name, metadata }: Server, region: string): TaggedVM {
  return {
    providerID: openStackProviderID(region, id),
    cluster: metadata[KEYS.cluster] ?? '',
    namespace: metadata[KEYS.namespace] ?? '',
    className: metadata[KEYS.className] ?? '',
    machineName: name,
    machineUID: metadata[KEYS.uid],
  };
}

/** Whether a server carries the two tags of its class; without them it is nobody's any more, and left alone. */
export function isMarked({ metadata }: Server, marks: readonly string[]): boolean {
  return marks.every((key) => metadata[key] !== undefined);
}

/**
 * Whether a server is still in the hands of the driver. One that was made for the machine carries the tags that its class had then: if those are
 * others than today's, the class was edited, which is no reason to leave the server alone. With one of the two gone, somebody has taken it out of
 * the driver's hands. A machine without a UID stands for exactly the server of its provider id, as a list has shown it.
 */
export function isMarkedFor(server: Server, marks: readonly string[], machine: MachineIdentity): boolean {
  const isMadeFor = isServerMadeFor(server, machine) || isOrphanOf(server, machine);
  return isMarked(server, marks) || (isMadeFor && hasMarks(server));
}

function isOrphanOf(server: Server, { cluster, namespace, uid, providerID }: MachineIdentity): boolean {
  const owner = serverOwnerOf(server, '');
  const isOurs = owner?.uid !== undefined && owner.cluster === cluster && owner.namespace === namespace;
  return isOurs && uid === undefined && parseProviderID(providerID)?.id === server.id;
}

/** Whether a list for a class shows a server: by the tags of the class, or, if the driver has made it for that class, by those of then. */
export function isListedFor(server: Server, marks: readonly string[], className: string): boolean {
  const { cluster, namespace, className: madeFor, machineUID } = serverTagsOf(server, '');
  const isOurs = cluster !== '' && namespace !== '' && machineUID !== undefined && madeFor === className;
  // A class without its tags would show the servers of everybody.
  return (marks.length === MARKS.length && isMarked(server, marks)) || (isOurs && hasMarks(server));
}

function hasMarks({ metadata }: Server): boolean {
  return marksIn(metadata).length === MARKS.length;
}

export function isServerOf(server: Server, machine: MachineIdentity, region: string): boolean {
  return isVMOf(serverTagsOf(server, region), machine);
}

/** Whether our own metadata names the machine: such a server was made for it and for nothing else. */
export function isServerMadeFor({ metadata }: Server, { cluster, uid }: MachineIdentity): boolean {
  return uid !== undefined && metadata[KEYS.uid] === uid && metadata[KEYS.cluster] === cluster;
}

/** Namespace that a server carries; undefined for one of an earlier provider. */
export function namespaceOf({ metadata }: Server): string | undefined {
  return metadata[KEYS.namespace];
}

/** The machine that a server says to belong to; undefined for one of an earlier provider. */
export function serverOwnerOf(server: Server, region: string): MachineIdentity | undefined {
  const { [KEYS.cluster]: cluster, [KEYS.namespace]: namespace, [KEYS.uid]: uid } = server.metadata;
  if (cluster === undefined || namespace === undefined) return undefined;
  return { cluster, namespace, name: server.name, uid, providerID: openStackProviderID(region, server.id) };
}
