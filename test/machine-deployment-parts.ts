import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../pkg/apis/meta.ts';
import type { Node } from '../pkg/apis/wire.ts';
import { FakeClock } from '../pkg/clock/fake-clock.ts';
import type { MachineDeploymentParts } from '../pkg/controllers/machine-deployment/parts.ts';
import { observe, type World } from '../pkg/controllers/machine-deployment/world.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../pkg/controllers/machine-set/controller-index.ts';
import { CreationBrake } from '../pkg/controllers/machine-set/creation-brake.ts';
import type { ObjectEvent } from '../pkg/controllers/machine-set/events.ts';
import {
  machineDeployments,
  machineSets,
  machines as machineResource,
  nodes as nodeResource,
} from '../pkg/kube/resource.ts';
import { silentLogger } from '../pkg/log/logger.ts';
import type { Target } from '../pkg/targets/targets.ts';
import { MemoryClient } from './memory-client.ts';
import { MemoryInformer } from './memory-informer.ts';

/** What the MachineDeployment controller is made of, in memory: for unit tests of what it asks of API servers. */
export class MemoryDeploymentParts implements MachineDeploymentParts {
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
  readonly events: string[] = [];
  readonly recorder = { event: ({ reason }: ObjectEvent<KubeObject>) => void this.events.push(reason) };
  readonly setRecorder = this.recorder;
  readonly log = silentLogger;
  readonly targets: MachineDeploymentParts['targets'];
  holdsScaleDownDuringRollout = false;

  constructor(
    deployment: MachineDeployment,
    { sets = [], machines = [], nodes = [] }: { sets?: MachineSet[]; machines?: Machine[]; nodes?: Node[] } = {},
  ) {
    const indexes = { [CONTROLLER_INDEX]: controllerIndex };
    this.machineDeployments = new MemoryInformer([deployment]);
    this.machineSets = new MemoryInformer(sets, indexes);
    this.machines = new MemoryInformer(machines, indexes);
    this.nodes = new MemoryInformer(nodes);
    this.client.put(machineDeployments, deployment);
    this.client.put(machineSets, ...sets);
    this.client.put(machineResource, ...machines);
    this.targetClient.put(nodeResource, ...nodes);
    const { targetClient } = this;
    const target = { cluster: 'target', reader: targetClient, writer: targetClient, nodes: this.nodes };
    // VolumeAttachments concern nobody here.
    this.targets = { of: () => target as unknown as Target, all: () => [target as unknown as Target] };
  }

  /** What a pass over it sees. */
  world(deployment: MachineDeployment): World {
    return observe(this, deployment);
  }
}
