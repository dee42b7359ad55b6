import {
  DELETION_POLICY_ANNOTATION,
  FORCED_REMOVAL_PREFIX,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { MAINTENANCE } from '../../pkg/controllers/machine-facts/maintenance.ts';
import { hasPreparationBegun, preparationShownBy } from '../../pkg/controllers/machine-facts/prepared-deletion.ts';
import { deleteMachine } from '../simulation/world/acts.ts';
import { LONE_LABEL } from '../simulation/world/ledger.ts';
import { MachinesWorld, POOL } from '../simulation/world/machines-world.ts';
import { type Fate, type FaultyLife, FaultyWorld } from './faulty-world.ts';

const NAME = 'lone';
const PODS = 2;
const CLOSED = { replicas: PODS, maxUnavailable: 0, volumes: 0 };
const FORCED_TIMEOUT = '10s';

/** What is done to a machine on which pods run. */
export interface MachinePlan {
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether its budget allows no eviction. */
  readonly isBlocked?: boolean;
  readonly volumes?: number;
  /** What is done to it, from the first mutation that may be hit. */
  readonly act: (scene: MachineScene) => Promise<void>;
  /** Mutations that must not be. */
  readonly forbids: RegExp;
}

/** By a user. */
export const FORCED_DELETION: MachinePlan = {
  labels: { 'force-deletion': 'true' },
  volumes: 1,
  forbids: /\/eviction$/,
  act: async (scene) => {
    scene.watchDeletion();
    scene.delete();
    await scene.untilGone();
  },
};

export const MAINTENANCE_AND_BACK: MachinePlan = {
  forbids: /^DELETE |Machine /,
  act: async (scene) => {
    scene.annotate({ [MAINTENANCE_ANNOTATION]: 'true' });
    await scene.untilMaintenanceIs('InMaintenance');
    for (const pod of scene.pods) scene.find(`pod ${pod} is there in maintenance`);
    if (!scene.isCordoned) scene.find('a Node in maintenance is not cordoned');
    scene.annotate({ [MAINTENANCE_ANNOTATION]: null });
    await scene.untilMaintenanceIs('NotInMaintenance');
    const marks = ({ metadata }: Machine | Node): string[] =>
      Object.keys(metadata.annotations ?? {}).filter((key) => /maintenance|scale-down-disabled/.test(key));
    await scene.until('without a mark of maintenance', () => marks(scene.machine!).length === 0);
    for (const mark of marks(scene.node!)) scene.find(`the Node still has ${mark}`);
    if (scene.isCordoned) scene.find('the Node still has its cordon');
  },
};

export const PREPARED_DELETION: MachinePlan = {
  forbids: /^DELETE .*\/pods\//,
  act: async (scene) => {
    scene.watchDeletion();
    // Once it is empty, it is deleted.
    scene.askedFor();
    scene.annotate({ [PREPARE_DELETION_ANNOTATION]: 'true' });
    await scene.untilGone();
    // Pods are evicted while the machine is still there, and its deletion finds none.
    const evicted = scene.mutations.findLastIndex((text) => text.endsWith('/eviction'));
    const deleted = scene.mutations.findIndex((text) => /^DELETE .*\/machines\//.test(text));
    if (evicted < 0 || evicted > deleted) scene.find('its pods were not evicted before it was deleted');
  },
};

export const ABORTED_DELETION: MachinePlan = {
  isBlocked: true,
  forbids: /^DELETE |Machine /,
  act: async (scene) => {
    scene.annotate({ [PREPARE_DELETION_ANNOTATION]: 'true' });
    await scene.until('cordoned', () => scene.isCordoned);
    scene.annotate({ [PREPARE_DELETION_ANNOTATION]: null });
    await scene.until('as before', () => {
      const { machine } = scene;
      const isOver = !hasPreparationBegun(machine!) && preparationShownBy(machine!) === undefined;
      return isOver && !scene.isCordoned;
    });
    if (scene.pods.length !== PODS) scene.find('a pod is gone');
  },
};

/** The provider does not delete the VM, and the machine is let go. */
export const REMOVAL_BY_FORCE: MachinePlan = {
  // Nothing of its Node is emptied.
  forbids: /\/eviction$|^DELETE .*\/pods\//,
  act: async (scene) => {
    const { uid } = scene.machine!.metadata;
    scene.failDeletions(true);
    scene.annotate({ [DELETION_POLICY_ANNOTATION]: 'forced' });
    scene.delete();
    await scene.until('let go', () => scene.machine === undefined);
    if (!scene.hasVM) scene.find('its VM is gone');
    if (!(`${FORCED_REMOVAL_PREFIX}/${uid}` in scene.classAnnotations)) scene.find('its class notes nothing');
    scene.failDeletions(false);
    await scene.until('without a VM', () => !scene.hasVM);
    // As the node lifecycle controller would: a Node that is ready stays.
    scene.silenceNode();
    await scene.untilGone();
  },
};

/** Lets a machine with pods run undisturbed, and does something to it while the n-th mutation from there on goes wrong. */
export async function endMachine(plan: MachinePlan, n: number, fate: Fate): Promise<FaultyLife> {
  const { isBlocked = false, volumes = 0, labels = {}, act, forbids } = plan;
  const flags = { 'leader-elect': String(fate === 'paused'), 'forced-deletion-timeout': FORCED_TIMEOUT };
  const pods = isBlocked ? CLOSED : { replicas: PODS, maxUnavailable: PODS, volumes };
  await using world = await MachinesWorld.create({ seed: 1, replicas: 0, pods, flags });
  const scene = new MachineScene(new FaultyWorld(world));
  await scene.open(labels);
  scene.faulty.arm(n, fate);
  await act(scene);
  for (const text of scene.mutations) if (forbids.test(text)) scene.find(`it was asked for ${text}`);
  return scene.faulty.life;
}

/** A machine with pods, as a user sees it. */
class MachineScene {
  readonly faulty: FaultyWorld;
  readonly #world: MachinesWorld;

  constructor(faulty: FaultyWorld) {
    this.faulty = faulty;
    this.#world = faulty.world;
  }

  async open(labels: Readonly<Record<string, string>>): Promise<void> {
    const { faulty } = this;
    this.#world.act('POST', this.#world.pathOf('machines'), {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name: NAME, labels: { ...labels, [LONE_LABEL]: 'true' } },
      spec: { class: { kind: 'MachineClass', name: POOL }, drainTimeout: '5m' },
    });
    await faulty.until('running', () => this.machine?.status?.currentStatus?.phase === 'Running');
    const { workload } = this.#world;
    await faulty.until(
      'full of pods',
      () => workload?.pods.length === PODS && workload.volumes.attachments.length === workload.volumes.names.length,
    );
  }

  get machine(): Machine | undefined {
    return this.#world.machines[0];
  }

  get node(): Node | undefined {
    return this.#world.nodes[0];
  }

  get isCordoned(): boolean {
    return this.node?.spec?.unschedulable === true;
  }

  get hasVM(): boolean {
    return this.#world.cloud.size > 0;
  }

  /** Names of pods on its Node. */
  get pods(): readonly string[] {
    const pods = this.#world.workload?.pods ?? [];
    return pods.filter(({ spec }) => spec?.nodeName === NAME).map(({ metadata }) => metadata.name);
  }

  get classAnnotations(): Readonly<Record<string, string>> {
    return this.faulty.classOf(POOL).metadata.annotations ?? {};
  }

  get mutations(): readonly string[] {
    return this.faulty.mutations;
  }

  find(what: string): void {
    this.faulty.find(what);
  }

  async until(what: string, isSo: () => boolean): Promise<void> {
    await this.faulty.until(what, isSo);
  }

  async untilMaintenanceIs(reason: string): Promise<void> {
    await this.until(reason, () => {
      const { conditions = [] } = this.node?.status ?? {};
      return conditions.some((one) => one.type === MAINTENANCE && one.reason === reason);
    });
  }

  /** Waits until no machine, VM, Node or token is left. */
  async untilGone(): Promise<void> {
    const { pool } = this.faulty;
    await this.until(
      'gone',
      () => this.machine === undefined && !this.hasVM && this.node === undefined && pool.leftovers().length === 0,
    );
  }

  annotate(annotations: Readonly<Record<string, string | null>>): void {
    this.#world.act('PATCH', this.#world.pathOf('machines', NAME), { metadata: { annotations } });
  }

  askedFor(): void {
    this.faulty.pool.ledger.askedFor(NAME);
  }

  delete(): void {
    deleteMachine(this.#world, this.faulty.pool.ledger, NAME);
  }

  /** From now on, a VM that goes before the pods and volumes of its Node is found. */
  watchDeletion(): void {
    const { cloud, workload } = this.#world;
    cloud.onEvent((_vm, event) => {
      if (event !== 'deleted') return;
      for (const pod of this.pods) this.find(`the VM went before ${pod}`);
      for (const { spec } of workload?.volumes.attachments ?? [])
        if (spec.nodeName === NAME) this.find(`the VM went before ${spec.source.persistentVolumeName}`);
    });
  }

  failDeletions(fails: boolean): void {
    const { faults } = this.#world.simulation;
    faults.set(fails ? [{ method: 'DeleteMachine', effect: 'fail', code: 'Unavailable' }] : []);
  }

  silenceNode(): void {
    void this.#world.simulation.nodes?.setReadiness(NAME, 'unknown').catch(() => undefined);
  }
}
