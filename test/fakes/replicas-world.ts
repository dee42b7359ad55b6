import { Registry } from 'prom-client';

import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { keyOf, type KubeObject } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { machineDeploymentController } from '../../pkg/controllers/machine-deployment/controller.ts';
import type { MachineDeploymentDeps } from '../../pkg/controllers/machine-deployment/step.ts';
import { Moves } from '../../pkg/controllers/machine-deployment/in-place/moves.ts';
import { NodeMarker } from '../../pkg/controllers/machine-deployment/node-marks/node-marker.ts';
import { observeDeployment, type Observed } from '../../pkg/controllers/machine-deployment/observed.ts';
import { machineSetController } from '../../pkg/controllers/machine-set/controller.ts';
import { CreationFailures } from '../../pkg/controllers/machine-deployment/sets/creation-failures.ts';
import { DeletionTurns } from '../../pkg/controllers/machine-set/deletion-turns.ts';
import type { MachineSetDeps } from '../../pkg/controllers/machine-set/step.ts';
import { machineSetMetrics } from '../../pkg/controllers/machine-set/metrics.ts';
import { Recoveries } from '../../pkg/controllers/machine-set/recoveries.ts';
import { CreationBrake } from '../../pkg/controllers/replicas/creation-brake.ts';
import type { ObjectEvent } from '../../pkg/controllers/replicas/events.ts';
import type { Owner, OwnerPass } from '../../pkg/controllers/replicas/owner-controller.ts';
import { PatientChanges } from '../../pkg/controllers/replicas/patient-changes.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../pkg/operator/indexes/owner-index.ts';
import {
  machineDeployments,
  machineSets,
  machines as machineResource,
  nodes as nodeResource,
} from '../../pkg/kube/client/resource.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { Expectations } from '../../pkg/work/reconcile/expectations.ts';
import { PassNotes } from '../../pkg/work/reconcile/object-pass/pass-notes.ts';
import type { StepResult } from '../../pkg/work/reconcile/result.ts';
import type { Target, Targets } from '../../pkg/kube/targets/targets.ts';
import { MemoryClient, type NotedWrite } from '../memory-client.ts';
import { MemoryInformer } from '../memory-informer.ts';
import { FakeClock } from './fake-clock.ts';

const signal = new AbortController().signal;

/** What there is in the two clusters, in the API server as in the cache. */
export interface WorldObjects {
  readonly deployments?: readonly MachineDeployment[];
  readonly sets?: readonly MachineSet[];
  readonly machines?: readonly Machine[];
  readonly nodes?: readonly Node[];
}

/** How passes came out: what they returned or threw, and all that was written so far: `patch machinesets/set-1`. */
export interface PassEnd {
  readonly result: unknown;
  readonly writes: readonly string[];
}

/** What MachineSets, MachineDeployments and node groups of autoscalers live on, in memory: what is written is seen in the caches. */
export class ReplicasWorld {
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

  constructor({ deployments = [], sets = [], machines = [], nodes = [] }: WorldObjects) {
    const indexes = { [CONTROLLER_INDEX]: controllerIndex };
    this.machineDeployments = new MemoryInformer(deployments);
    this.machineSets = new MemoryInformer(sets, indexes);
    this.machines = new MemoryInformer(machines, { ...indexes, ...MACHINE_INDEXES });
    this.nodes = new MemoryInformer(nodes, NODE_INDEXES);
    const { client, targetClient } = this;
    client.shows(machineDeployments, this.machineDeployments);
    client.shows(machineSets, this.machineSets);
    client.shows(machineResource, this.machines);
    targetClient.shows(nodeResource, this.nodes);
    // VolumeAttachments concern nobody here.
    const target = { cluster: 'target', reader: targetClient, writer: targetClient, nodes: this.nodes };
    this.targets = { of: () => target as unknown as Target, all: () => [target as unknown as Target] };
  }
}

/** A pass over this object that has just begun. */
export function passOver<T extends Owner>(object: T): OwnerPass<T> {
  return { key: keyOf(object), object, invalid: undefined, signal, notes: new PassNotes() };
}

/** The same with a controller. */
abstract class ControllerWorld extends ReplicasWorld {
  /** One pass over the object of that key, or of the one that the world is about. */
  abstract reconcile(key?: string): Promise<StepResult>;

  /** What was written besides statuses. */
  get acts(): readonly NotedWrite[] {
    return this.client.writes.filter(({ what }) => !what.endsWith('/status'));
  }

  /** The same, however it ends. */
  async pass(): Promise<PassEnd> {
    const [outcome] = await Promise.allSettled([this.reconcile()]);
    return {
      result: outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as unknown),
      writes: this.client.writes.map(({ verb, what }) => `${verb} ${what}`),
    };
  }
}

/** The MachineSet controller, and what its steps are made of. */
export class SetWorld extends ControllerWorld implements MachineSetDeps {
  readonly expectations = new Expectations({ clock: this.clock });
  readonly safetyRecorder = this.recorder;
  readonly metrics = machineSetMetrics(new Registry(), () => []);
  nodeConditions: readonly string[] = [];
  readonly recoveries = new Recoveries(this);
  readonly turns = new DeletionTurns();
  #suffixes = 0;
  #controller: ReturnType<typeof machineSetController> | undefined;

  constructor(sets: readonly MachineSet[], machines: readonly Machine[] = []) {
    super({ sets, machines });
  }

  async reconcile(key = 'default/set-1'): Promise<StepResult> {
    this.#controller ??= machineSetController(this);
    return await this.#controller.reconcile(key, signal);
  }

  readonly newSuffix = (): string => `new-${++this.#suffixes}`;
}

/** The MachineDeployment controller, and what its steps are made of. */
export class DeploymentWorld extends ControllerWorld implements MachineDeploymentDeps {
  readonly setRecorder = this.recorder;
  holdsScaleDownDuringRollout = false;
  holdsJoiningNodes = true;
  isLeadingMachines = true;
  readonly leadsMachines = (): boolean => this.isLeadingMachines;
  readonly marker = new NodeMarker(this);
  readonly moves = new Moves(this);
  readonly changes = new PatientChanges(this);
  readonly creations = new CreationFailures(this);
  #controller: ReturnType<typeof machineDeploymentController> | undefined;

  constructor(deployment: MachineDeployment, others: Omit<WorldObjects, 'deployments'> = {}) {
    super({ ...others, deployments: [deployment] });
  }

  async reconcile(key = 'default/deployment-1'): Promise<StepResult> {
    this.#controller ??= machineDeploymentController(this);
    return await this.#controller.reconcile(key, signal);
  }

  /** What a pass over it sees. */
  observed(deployment: MachineDeployment): Observed {
    return observeDeployment(this, deployment);
  }
}
