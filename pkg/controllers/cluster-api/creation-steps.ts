import { isDeepStrictEqual } from 'node:util';

import { readBootstrap } from '../../apis/cluster-api/bootstrap.ts';
import type { ContractReference } from '../../apis/cluster-api/contract.ts';
import {
  CLUSTER_NAME_LABEL,
  HAD_KUBECONFIG_ANNOTATION,
  KUBECONFIG_SECRET_SUFFIX,
  NODE_CLUSTER_ANNOTATION,
} from '../../apis/cluster-api/keys.ts';
import { readInfrastructure } from '../../apis/cluster-api/infrastructure.ts';
import type { ClusterAPIMachine, DeprecatedStatus } from '../../apis/cluster-api/machine.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { ignoreNotFound } from '../../kube/errors.ts';
import { mergePatch, mergePatchIfUnchanged, type MergePatch } from '../../kube/patch.ts';
import { clusterAPIMachines, nodes } from '../../kube/resource.ts';
import { next } from '../../reconcile/result.ts';
import { certificatesExpiryOf } from './defaults.ts';
import type { External } from './externals.ts';
import type { MachinePass, MachineStep, StepDeps } from './machine-pass.ts';
import { namedNode, WHICH_NODE, type OtherNodes } from './named-node.ts';
import { nodeChange } from './node-change.ts';
import { isOutdated } from './outdated.ts';
import { ownershipOf } from './ownership.ts';
import { contestedNode, contestOf, type Claim } from './provider-id-claims.ts';
import type { Seen, SeenInfrastructure, SeenNode } from './seen.ts';

/** What is done in each pass, in this order: a step that fails keeps none of the others from running. */
export function creationSteps(deps: StepDeps): readonly MachineStep[] {
  return [bootstrapStep(deps), infrastructureStep(deps), dataSecretStep(deps), nodeStep(deps), certificates];
}

/** What objects of providers are looked at with. */
type LookDeps = Pick<StepDeps, 'externals' | 'servedAs' | 'writer'>;

function bootstrapStep(deps: LookDeps): MachineStep {
  return {
    name: 'bootstrap',
    async run(pass) {
      const { machine } = pass;
      const reference = machine.spec.bootstrap?.configRef;
      pass.bootstrap = await look(deps, pass, reference, readBootstrap);
      const known = machine.spec.bootstrap?.dataSecretName;
      // It says that a bootstrap provider has done its work: who gives the Secret has none.
      if (reference === undefined) return next;
      if (known !== undefined && known !== '') {
        machine.status.initialization = { ...machine.status.initialization, bootstrapDataSecretCreated: true };
        return next;
      }
      if (pass.bootstrap.kind !== 'found' || !pass.bootstrap.report.created) return next;
      const { dataSecretName } = pass.bootstrap.report;
      if (dataSecretName === undefined) {
        pass.problems.push(
          `${reference.kind} ${reference.name} says that its data Secret is there, and not what it is called: wait, or look at its provider`,
        );
        return next;
      }
      machine.spec.bootstrap = { ...machine.spec.bootstrap, dataSecretName };
      machine.status.initialization = { ...machine.status.initialization, bootstrapDataSecretCreated: true };
      return next;
    },
  };
}

function infrastructureStep(deps: LookDeps): MachineStep {
  return {
    name: 'infrastructure',
    async run(pass) {
      const { machine } = pass;
      pass.infrastructure = await look(deps, pass, machine.spec.infrastructureRef, readInfrastructure);
      if (pass.infrastructure.kind !== 'found') return next;
      const { report, external } = pass.infrastructure;
      showFailure(machine.status, report.failure);
      const was = machine.status.initialization?.infrastructureProvisioned === true;
      if (!report.provisioned && !was) return next;
      // Without the id nobody knows which Node it is: there is more to come.
      if (report.providerID === undefined && (machine.spec.providerID ?? '') === '') return next;
      machine.spec.providerID = report.providerID ?? machine.spec.providerID ?? '';
      if (report.addresses.length > 0) machine.status.addresses = report.addresses;
      else delete machine.status.addresses;
      machine.status.initialization = { ...machine.status.initialization, infrastructureProvisioned: true };
      if (report.failureDomain !== undefined) {
        machine.status.failureDomain = report.failureDomain;
        if (external.contract === 'v1beta1') machine.spec.failureDomain = report.failureDomain;
      }
      return next;
    },
  };
}

/** Nobody needs the data of a machine that has started. */
function dataSecretStep({ dataSecrets }: Pick<StepDeps, 'dataSecrets'>): MachineStep {
  return {
    name: 'data-secret',
    async run(pass) {
      const { machine, signal } = pass;
      const { dataSecretName = '' } = machine.spec.bootstrap ?? {};
      const isStarted = machine.status.initialization?.infrastructureProvisioned === true;
      if (dataSecretName === '' || isStarted || isBeingDeleted(machine)) return next;
      const { namespace = '' } = machine.metadata;
      pass.dataSecret = await dataSecrets.troubleWith({ namespace, name: dataSecretName }, signal);
      return next;
    },
  };
}

/** Control planes renew machines before their certificates expire. */
const certificates: MachineStep = {
  name: 'certificates',
  run({ machine, bootstrap, problems }) {
    const config = bootstrap.kind === 'found' ? bootstrap.external.object : undefined;
    const expiry = certificatesExpiryOf(machine, config);
    if ('problem' in expiry) problems.push(expiry.problem);
    else if (expiry.date !== undefined) machine.status.certificatesExpiryDate = expiry.date;
    else if (bootstrap.kind !== 'reading' && bootstrap.kind !== 'unknown') delete machine.status.certificatesExpiryDate;
    return next;
  },
};

/** What is asked for Nodes, and for whose they are. */
type NodeDeps = Pick<StepDeps, 'machines' | 'externals' | 'servedAs' | 'clock'>;

function nodeStep(deps: NodeDeps): MachineStep {
  return {
    name: 'node',
    async run(pass) {
      const { machine, told, signal, nodeCluster } = pass;
      pass.node = await lookForNode(deps, pass);
      if (pass.node.kind === 'unreachable' && !pass.node.isOver) {
        pass.again.push({ afterMs: graceLeftMs(deps, pass), waitingFor: 'the cluster of its Node to answer' });
      }
      if (pass.node.kind !== 'found' || nodeCluster.kind !== 'reached') return next;
      const { target, identity } = nodeCluster;
      const { name } = pass.node.node.metadata;
      if (identity !== undefined) {
        machine.metadata.annotations = { ...machine.metadata.annotations, [NODE_CLUSTER_ANNOTATION]: identity };
      }
      const before = machine.status.nodeRef?.name;
      if (before !== name) {
        machine.status.nodeRef = { name };
        const why = before === undefined ? '' : `: ${before} is gone, and it has the provider ID`;
        told.push({ type: 'Normal', reason: 'SuccessfulSetNodeRef', message: `The Node is ${name}${why}` });
      }
      const { nodeInfo } = pass.node.node.status ?? {};
      if (nodeInfo !== undefined) machine.status.nodeInfo = { ...nodeInfo };
      if (isBeingDeleted(machine)) return next;
      const isInterruptible = pass.infrastructure.kind === 'found' && pass.infrastructure.report.interruptible;
      const outdated = isOutdated(machine, (reference) => deps.externals.find(machine, reference));
      const change = nodeChange(pass.node.node, machine, { isInterruptible, isOutdated: outdated });
      if (change === undefined) return next;
      const { node } = pass.node;
      // Taints are a list that was made of the Node as it was seen.
      const patch = (change.spec === undefined ? mergePatch : mergePatchIfUnchanged)(node, change);
      await target.writer.patch('change', nodes, { name }, patch, { signal });
      return next;
    },
  };
}

/** What the cache says, but that a Node is gone: a kubelet may have registered it anew. Throws ApiError. */
async function lookForNode(deps: NodeDeps, pass: MachinePass): Promise<SeenNode> {
  const { machine, cluster, nodeCluster, infrastructure, signal } = pass;
  const seen = nodeOf(deps, pass);
  const name = machine.status.nodeRef?.name;
  // The API server of a Cluster that goes may be no more, and its Nodes are let alone.
  if (seen.kind !== 'gone' || name === undefined || nodeCluster.kind !== 'reached' || isBeingDeleted(cluster)) {
    return seen;
  }
  pass.node = { kind: 'undecided', problem: `Whether Node ${name} is gone could not be read` };
  const live = await nodeCluster.target.reader.get(nodes, { name }, { signal }).catch(ignoreNotFound);
  const { providerID = '' } = machine.spec;
  const others = nodeCluster.target.nodes.byIndex('providerID', providerID).filter((one) => one.metadata.name !== name);
  const claim = { machine, infrastructure };
  const rivals = rivalsOf(deps, machine);
  const holder = rivals.find((rival) =>
    others.some(({ metadata }) => metadata.name === rival.machine.status?.nodeRef?.name),
  );
  const contest = holder && contestOf(claim, holder);
  return namedNode(machine, live, { nodes: others, contest, infrastructure: standOf(infrastructure) });
}

function standOf(infrastructure: SeenInfrastructure): OtherNodes['infrastructure'] {
  if (infrastructure.kind === 'reading' || infrastructure.kind === 'unknown') return 'unknown';
  return infrastructure.kind === 'found' && !isBeingDeleted(infrastructure.external.object) ? 'there' : 'gone';
}

/** The other Machines with the provider ID of this one. */
function rivalsOf(deps: NodeDeps, { metadata, spec }: ClusterAPIMachine): readonly Claim[] {
  return deps.machines
    .byIndex('providerID', spec?.providerID ?? '')
    .filter((other) => other.metadata.uid !== metadata.uid)
    .map((machine) => ({
      machine,
      infrastructure: see(deps, machine, machine.spec?.infrastructureRef, readInfrastructure),
    }));
}

/** What is known of Nodes is told for so long after their cluster was reached for the last time. */
const GRACE_MS = 120_000;

function graceLeftMs({ clock }: Pick<StepDeps, 'clock'>, { nodeCluster }: Pick<MachinePass, 'nodeCluster'>): number {
  if (nodeCluster.kind !== 'unreachable') return 0;
  return Math.max(0, nodeCluster.sinceMs + GRACE_MS - clock.monotonicMs());
}

/**
 * The one Node with the provider id; once it was found, whether that one is still there. None while it may be another Machine's, or the
 * infrastructure is: a Machine may have been copied with its provider id, and must not take the Node of the first one along.
 */
export function nodeOf(
  deps: NodeDeps,
  pass: Pick<MachinePass, 'machine' | 'infrastructure' | 'nodeCluster' | 'cluster'>,
): SeenNode {
  const { machine, infrastructure, nodeCluster, cluster } = pass;
  const { spec, status } = machine;
  const { providerID = '' } = spec;
  if (nodeCluster.kind === 'none') {
    return { kind: 'unknown', problem: 'there is no target cluster: start the manager with one (--target-kubeconfig)' };
  }
  if (providerID === '' || infrastructure.kind === 'foreign') return { kind: 'none' };
  if (nodeCluster.kind === 'unreachable') {
    return { kind: 'unreachable', why: nodeCluster.why, isOver: graceLeftMs(deps, pass) === 0 };
  }
  const contested = contestedNode({ machine, infrastructure }, rivalsOf(deps, machine));
  if (contested !== undefined) return contested;
  const found = nodeCluster.target.nodes.byIndex('providerID', providerID);
  const known = status.nodeRef?.name;
  const isKnown = ({ metadata }: Node): boolean => metadata.name === known;
  const node = known === undefined ? found[0] : found.find(isKnown);
  if (known === undefined && found.length > 1) {
    const names = found.map(({ metadata }) => metadata.name).toSorted();
    const problem = `Nodes ${names.join(' and ')} have the same provider ID ${providerID}: ${WHICH_NODE}`;
    return { kind: 'undecided', problem };
  }
  if (node !== undefined) return { kind: 'found', node };
  if (known !== undefined && nodeCluster.identity !== undefined && !isMarked(machine)) {
    const secretName = `${cluster.metadata.name}${KUBECONFIG_SECRET_SUFFIX}`;
    const why =
      `Node ${known} was found elsewhere, before Secret ${secretName} led to a cluster in which it is not: correct the Secret, or delete it ` +
      `and annotation ${HAD_KUBECONFIG_ANNOTATION} of the Cluster; ` +
      `if the Node is no more, set annotation ${NODE_CLUSTER_ANNOTATION}=${nodeCluster.identity}`;
    return { kind: 'unreachable', why, isOver: true };
  }
  return { kind: known === undefined ? 'absent' : 'gone' };
}

/** Whether it is known in which cluster its Node was found: that was written before `status.nodeRef`. */
function isMarked({ metadata }: MachinePass['machine']): boolean {
  return metadata.annotations?.[NODE_CLUSTER_ANNOTATION] !== undefined;
}

/** How what an object says is read. */
type Read<Report> = (object: External['object'], contract: External['contract']) => Report;

/** Finds an object that a Machine names, and reads what it says. */
function see<Report>(
  { externals, servedAs }: Pick<StepDeps, 'externals' | 'servedAs'>,
  machine: ClusterAPIMachine,
  reference: ContractReference | undefined,
  read: Read<Report>,
): Seen<Report> {
  if (reference === undefined) return { kind: 'none' };
  const found = externals.find(machine, reference);
  if (found.kind !== 'found') return found;
  const ownership = ownershipOf(found.object, machine, servedAs(clusterAPIMachines));
  if ('foreign' in ownership) {
    const { kind, name } = ownership.foreign;
    const problem = `${reference.kind} ${reference.name} belongs to ${kind} ${name}: name an object of its own in the Machine`;
    return { kind: 'foreign', problem };
  }
  return { kind: 'found', external: found, report: read(found.object, found.contract) };
}

/** The same of the Machine of a pass, which becomes the owner of the object. */
async function look<Report>(
  deps: LookDeps,
  pass: MachinePass,
  reference: ContractReference | undefined,
  read: Read<Report>,
): Promise<Seen<Report>> {
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
  const ownership = ownershipOf(object, machine, servedAs(clusterAPIMachines));
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

function showFailure(
  status: MachinePass['machine']['status'],
  failure: { readonly reason: string; readonly message: string } | undefined,
): void {
  const {
    failureReason: _reason,
    failureMessage: _message,
    ...rest
  }: DeprecatedStatus = status.deprecated?.v1beta1 ?? {};
  if (failure === undefined && _reason === undefined && _message === undefined) return;
  const shown = failure === undefined ? {} : said(failure);
  status.deprecated = { ...status.deprecated, v1beta1: { ...rest, ...shown } };
}

/** Neither member may be empty. */
function said({ reason, message }: { readonly reason: string; readonly message: string }): DeprecatedStatus {
  return { ...(reason !== '' && { failureReason: reason }), ...(message !== '' && { failureMessage: message }) };
}
