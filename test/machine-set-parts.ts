import { Registry } from 'prom-client';

import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../pkg/apis/wire.ts';
import { FakeClock } from '../pkg/clock/fake-clock.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../pkg/controllers/machine-set/controller-index.ts';
import { CreationBrake } from '../pkg/controllers/machine-set/creation-brake.ts';
import type { ObjectEvent } from '../pkg/controllers/machine-set/events.ts';
import type { MachineSetParts } from '../pkg/controllers/machine-set/parts.ts';
import { machines as machineResource, machineSets as setResource } from '../pkg/kube/resource.ts';
import { silentLogger } from '../pkg/log/logger.ts';
import { machineSetMetrics } from '../pkg/metrics/machine-set.ts';
import { Expectations } from '../pkg/reconcile/expectations.ts';
import type { Target } from '../pkg/targets/targets.ts';
import { MemoryClient } from './memory-client.ts';
import { MemoryInformer } from './memory-informer.ts';

/** What the MachineSet controller is made of, in memory: for unit tests of what it asks of API servers. */
export class MemorySetParts implements MachineSetParts {
  readonly clock = new FakeClock();
  readonly client = new MemoryClient();
  readonly targetClient = new MemoryClient();
  readonly reader = this.client;
  readonly writer = this.client;
  readonly machineSets: MemoryInformer<MachineSet>;
  readonly machineDeployments = new MemoryInformer<MachineDeployment>();
  readonly machines: MemoryInformer<Machine>;
  readonly nodes = new MemoryInformer<Node>();
  readonly brake = new CreationBrake({ clock: this.clock });
  readonly expectations = new Expectations({ clock: this.clock });
  readonly events: string[] = [];
  readonly recorder = { event: ({ reason }: ObjectEvent<MachineSet>) => void this.events.push(reason) };
  readonly safetyRecorder = this.recorder;
  readonly metrics = machineSetMetrics(new Registry(), () => []);
  readonly log = silentLogger;
  readonly nodeConditions: readonly string[] = [];
  readonly targets: MachineSetParts['targets'];
  #suffixes = 0;

  constructor(sets: readonly MachineSet[], machines: readonly Machine[]) {
    const indexes = { [CONTROLLER_INDEX]: controllerIndex };
    this.machineSets = new MemoryInformer(sets, indexes);
    this.machines = new MemoryInformer(machines, indexes);
    this.client.put(setResource, ...sets);
    this.client.put(machineResource, ...machines);
    const target = { cluster: 'target', reader: this.targetClient, nodes: this.nodes } as unknown as Target;
    this.targets = { of: () => target, all: () => [target] };
  }

  readonly newSuffix = (): string => `new-${++this.#suffixes}`;
}
