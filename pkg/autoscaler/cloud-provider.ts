import { ServerError, Status } from './rpc-error.ts';

import { replicasOf } from '../apis/machine/v1alpha1/defaults.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { keyBeside, keyOf } from '../apis/meta.ts';
import type { Informer, Lister } from '../kube/cache/lister.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import type { Trust } from '../kube/gate/leader-gate.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import { chosenIn } from '../controllers/machine-deployment/scaling/scaler-handoff.ts';
import {
  InstanceStatus_InstanceState as State,
  type NodeGroup as NodeGroupMessage,
  type NodeGroupAutoscalingOptions,
} from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { RpcReply, RpcRequest } from './grpc-server.ts';
import type { NodeGroup, NodeGroups } from './groups.ts';
import { type Instance, instancesOf } from './instances.ts';
import type { LearnedShapes } from './learned.ts';
import type { Membership } from './membership.ts';
import type { GroupSizes } from './metrics.ts';
import { describeMutated, type Mutated } from './mutations/decision.ts';
import type { Mutations } from './mutations/index.ts';
import type { AnnouncedTemplate } from '../controllers/announced-template.ts';
import { nodeBytes } from './node-bytes.ts';
import { optionsReply, type OwnOptions, ownOptions, provisionMsOf } from './options.ts';
import type { Places } from './places.ts';
import { parsePlaceholder } from './placeholder.ts';
import type { RpcCall, Rpcs } from './rpcs.ts';
import { isTemplate, templateNode } from './template.ts';

export interface CloudProviderDeps {
  readonly groups: NodeGroups;
  readonly membership: Membership;
  readonly machineDeployments: Lister<MachineDeployment>;
  readonly machineClasses: Pick<Informer<MachineClass>, 'get' | 'hasSynced'>;
  readonly learned: LearnedShapes;
  /** What its provider says of a class that says nothing itself. Never rejects because of what the API server says. */
  readonly announced: (machineClass: MachineClass, signal: AbortSignal) => Promise<AnnouncedTemplate | undefined>;
  readonly mutations: Mutations;
  readonly places: Pick<Places, 'see'>;
  /** See `owedBy`. */
  readonly owed: (deployment: MachineDeployment) => number;
  /** Resolves when the caches show the present. */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly gpu: Pick<AutoscalerConfig, 'gpuLabel' | 'gpuTypes'>;
  readonly clock: Clock;
  readonly trust: Pick<Trust, 'blindMs' | 'graceLeftMs'>;
  /** Where Machines and their Nodes are. */
  readonly clusters: readonly Cluster[];
}

type Nothing = Record<string, never>;

interface Found {
  readonly group: NodeGroup;
  readonly deployment: MachineDeployment;
}

const STATES = {
  running: State.instanceRunning,
  creating: State.instanceCreating,
  deleting: State.instanceDeleting,
} as const satisfies Record<Instance['state'], State>;

/** As the client numbers them. */
const ERROR_CLASSES = { 'out-of-resources': 1, other: 99 } as const;

/** What a cluster-autoscaler is told, from the caches, which show what was changed here before the watch does. */
export class CloudProvider implements Rpcs {
  readonly #deps: CloudProviderDeps;
  /** By the MachineDeployment as it is in the cache, which is never changed in place. */
  readonly #options = new WeakMap<MachineDeployment, OwnOptions>();
  /** What the client does in groups without settings, as it said last: it asks for each Node that it expects. */
  #defaults: NodeGroupAutoscalingOptions | undefined;

  constructor(deps: CloudProviderDeps) {
    this.#deps = deps;
  }

  sizes(): readonly GroupSizes[] {
    return this.#deps.groups.list().flatMap(({ id }) => {
      const found = this.#find(id);
      if (found === undefined) return [];
      return [{ group: found.group, target: replicasOf(found.deployment), instances: this.#instances(found) }];
    });
  }

  nodeGroups(): RpcReply<'nodeGroups'> {
    return { nodeGroups: this.#deps.groups.list().map(messageOf) };
  }

  /** A Node stays in its group as long as its Machine is there, also when it is going: the client asks until it is gone. */
  nodeGroupForNode({ node }: RpcRequest<'nodeGroupForNode'>): RpcReply<'nodeGroupForNode'> {
    const { groups, membership } = this.#deps;
    const { providerId = '', name = '' } = node ?? {};
    const placeholder = parsePlaceholder(providerId);
    if (placeholder?.kind === 'missing') return { nodeGroup: messageOf(groups.get(placeholder.group)) };
    const machine = membership.machineOf({ providerId, name });
    const deployment = machine && membership.deploymentOf(machine);
    return { nodeGroup: messageOf(deployment && groups.of(deployment)) };
  }

  pricingNodePrice(): never {
    throw unimplemented('machines have no prices; use an expander other than price');
  }

  pricingPodPrice(): never {
    throw unimplemented('pods have no prices; use an expander other than price');
  }

  gPULabel(): RpcReply<'gPULabel'> {
    return { label: this.#deps.gpu.gpuLabel };
  }

  getAvailableGPUTypes(): RpcReply<'getAvailableGPUTypes'> {
    return { gpuTypes: Object.fromEntries(this.#deps.gpu.gpuTypes.map((type) => [type, new Uint8Array()])) };
  }

  cleanup(): Nothing {
    return {};
  }

  /** A barrier: what the client asks next is answered from what is true now. */
  async refresh(_request: unknown, { signal }: Pick<RpcCall, 'signal'>): Promise<Nothing> {
    await this.#deps.catchUp(signal);
    return {};
  }

  nodeGroupTargetSize({ id }: RpcRequest<'nodeGroupTargetSize'>): RpcReply<'nodeGroupTargetSize'> {
    return { targetSize: replicasOf(this.#require(id).deployment) };
  }

  async nodeGroupIncreaseSize({ id, delta }: RpcRequest<'nodeGroupIncreaseSize'>, call: RpcCall): Promise<Nothing> {
    const { group } = this.#require(id);
    return done(call, await this.#deps.mutations.increase(group, delta, call));
  }

  async nodeGroupDeleteNodes({ id, nodes }: RpcRequest<'nodeGroupDeleteNodes'>, call: RpcCall): Promise<Nothing> {
    const { group } = this.#require(id);
    return done(call, await this.#deps.mutations.delete(group, nodes, call));
  }

  async nodeGroupDecreaseTargetSize(
    { id, delta }: RpcRequest<'nodeGroupDecreaseTargetSize'>,
    call: RpcCall,
  ): Promise<Nothing> {
    const { group } = this.#require(id);
    return done(call, await this.#deps.mutations.decrease(group, delta, call));
  }

  nodeGroupNodes({ id }: RpcRequest<'nodeGroupNodes'>): RpcReply<'nodeGroupNodes'> {
    const instances = this.#instances(this.#require(id)).map((instance) => ({
      id: instance.id,
      status: {
        instanceState: STATES[instance.state],
        errorInfo: instance.error && {
          errorCode: instance.error.code,
          errorMessage: instance.error.message,
          instanceErrorClass: ERROR_CLASSES[instance.error.class],
        },
      },
    }));
    return { instances };
  }

  async nodeGroupTemplateNodeInfo(
    { id }: RpcRequest<'nodeGroupTemplateNodeInfo'>,
    { signal }: RpcCall,
  ): Promise<RpcReply<'nodeGroupTemplateNodeInfo'>> {
    const { deployment } = this.#require(id);
    if (!this.#deps.machineClasses.hasSynced)
      throw unimplemented('MachineClasses cannot be read; apply deploy/rbac/control-manager.yaml');
    const machineClass = this.#classOf(deployment);
    const learned = machineClass && this.#deps.learned.of(machineClass);
    // Few classes say nothing, and no Node of them is known for a while only.
    const isUnknown = machineClass !== undefined && machineClass.nodeTemplate === undefined && learned === undefined;
    const announced = isUnknown ? await this.#deps.announced(machineClass, signal) : undefined;
    const template = templateNode({ id, deployment, machineClass, learned, announced });
    if (!isTemplate(template)) throw unimplemented(template.reason);
    const bytes = nodeBytes(template);
    return { embeddedNode: bytes, nodeBytes: bytes };
  }

  nodeGroupGetOptions({ id, defaults }: RpcRequest<'nodeGroupGetOptions'>): RpcReply<'nodeGroupGetOptions'> {
    const own = this.#optionsOf(this.#require(id).deployment);
    this.#defaults = defaults;
    const options = optionsReply(own, defaults);
    if (options === undefined) throw unimplemented(`MachineDeployment ${id} has no settings of its own`);
    return { nodeGroupAutoscalingOptions: options };
  }

  /** Asked for five times for each Node in each loop. */
  #optionsOf(deployment: MachineDeployment): OwnOptions {
    const known = this.#options.get(deployment) ?? ownOptions(deployment);
    this.#options.set(deployment, known);
    return known;
  }

  #classOf(deployment: MachineDeployment): MachineClass | undefined {
    const { name = '' } = deployment.spec.template.spec?.class ?? {};
    return this.#deps.machineClasses.get(keyBeside(deployment, name));
  }

  #instances({ group, deployment }: Found): readonly Instance[] {
    const { membership, places, owed, clock } = this.#deps;
    const { uid } = deployment.metadata;
    const nowMs = clock.now();
    const owned = membership.machinesOf(deployment);
    const chosen = new Set(chosenIn(deployment, owned, nowMs).map(({ machine }) => machine.metadata.name));
    const machines = owned.map((machine) => ({ machine, node: membership.nodeOf(machine) }));
    const ambiguous = machines.filter(({ machine, node }) => node === undefined && membership.hasNode(machine));
    return instancesOf({
      id: group.id,
      replicas: replicasOf(deployment),
      min: group.min,
      owed: owed(deployment),
      machines,
      ambiguous: new Set(ambiguous.map(({ machine }) => machine.metadata.name)),
      chosen,
      places: (count) => places.see(uid, count),
      provisionMs: provisionMsOf(this.#optionsOf(deployment), this.#defaults),
      seenMs: (sinceMs) => this.#seenMs(sinceMs, nowMs),
      nowMs,
    });
  }

  /**
   * What could not be seen does not count, as for the creation timeout: after an outage kubelets need a while to join, and whoever has just
   * begun to lead may not know yet whose Nodes have joined.
   */
  #seenMs(sinceMs: number, nowMs: number): number {
    const { trust, clusters, clock } = this.#deps;
    if (trust.graceLeftMs(clusters) > 0) return 0;
    const waitedMs = nowMs - sinceMs;
    return waitedMs - trust.blindMs(clusters, clock.monotonicMs() - waitedMs);
  }

  #find(id: string): Found | undefined {
    const group = this.#deps.groups.get(id);
    const deployment = group && this.#deps.machineDeployments.get(keyOf({ metadata: group }));
    return group && deployment && { group, deployment };
  }

  #require(id: string): Found {
    const found = this.#find(id);
    if (found !== undefined) return found;
    const message = `node group ${JSON.stringify(id)} does not exist: ${this.#deps.groups.whyNot(id)}`;
    throw new ServerError(Status.NOT_FOUND, message);
  }
}

/** What the client is told of a group; without one an empty id, which means none. */
function messageOf(group: NodeGroup | undefined): NodeGroupMessage {
  if (group === undefined) return { id: '', minSize: 0, maxSize: 0, debug: '' };
  const { id, namespace, name, min, max } = group;
  return { id, minSize: min, maxSize: max, debug: `MachineDeployment ${namespace}/${name}, ${min} to ${max}` };
}

function done(call: RpcCall, mutated: Mutated): Nothing {
  call.report(describeMutated(mutated));
  return {};
}

function unimplemented(why: string): ServerError {
  return new ServerError(Status.UNIMPLEMENTED, why);
}
