import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../pkg/apis/meta.ts';
import type { Node } from '../pkg/apis/wire.ts';
import { FakeClock } from './fakes/fake-clock.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../pkg/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../pkg/indexes/owner-index.ts';
import { CreationBrake } from '../pkg/controllers/replicas/creation-brake.ts';
import type { ObjectEvent } from '../pkg/controllers/replicas/events.ts';
import {
  machineDeployments,
  machineSets,
  machines as machineResource,
  nodes as nodeResource,
} from '../pkg/kube/resource.ts';
import { silentLogger } from '../pkg/log/logger.ts';
import type { Target, Targets } from '../pkg/targets/targets.ts';
import { MemoryClient } from './memory-client.ts';
import { MemoryInformer } from './memory-informer.ts';

/** What there is in the two clusters, in the API server as in the cache. */
export interface MemoryObjects {
  readonly deployments?: readonly MachineDeployment[];
  readonly sets?: readonly MachineSet[];
  readonly machines?: readonly Machine[];
  readonly nodes?: readonly Node[];
}

/**
 * What controllers of MachineSets and MachineDeployments are both made of, in memory: for unit tests of what they ask of API
 * servers.
 */
export class MemoryDeps {
  readonly clock = new FakeClock();
  readonly client = new MemoryClient();
  readonly targetClient = new MemoryClient();
  readonly reader = this.client;
  readonly writer = this.client;
  readonly machineDeployments: MemoryInformer<MachineDeployment>;
  readonly machineSets: MemoryInformer<MachineSet>;
  readonly machines: MemoryInformer<Machine>;
  readonly nodes: MemoryInformer<Node>;
  readonly brake = new CreationBrake({ clock: this.clock });
  /** Reasons of the Events that were told. */
  readonly events: string[] = [];
  readonly recorder = { event: ({ reason }: ObjectEvent<KubeObject>) => void this.events.push(reason) };
  readonly log = silentLogger;
  readonly targets: Targets;

  constructor({ deployments = [], sets = [], machines = [], nodes = [] }: MemoryObjects) {
    const indexes = { [CONTROLLER_INDEX]: controllerIndex };
    this.machineDeployments = new MemoryInformer(deployments);
    this.machineSets = new MemoryInformer(sets, indexes);
    this.machines = new MemoryInformer(machines, { ...indexes, ...MACHINE_INDEXES });
    this.nodes = new MemoryInformer(nodes, NODE_INDEXES);
    this.client.put(machineDeployments, ...deployments);
    this.client.put(machineSets, ...sets);
    this.client.put(machineResource, ...machines);
    this.targetClient.put(nodeResource, ...nodes);
    const { targetClient } = this;
    // VolumeAttachments concern nobody here.
    const target = { cluster: 'target', reader: targetClient, writer: targetClient, nodes: this.nodes };
    this.targets = { of: () => target as unknown as Target, all: () => [target as unknown as Target] };
  }
}
