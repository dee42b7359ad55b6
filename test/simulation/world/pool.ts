import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { deleteMachine, mishap, renameHost, USER_ACTS, type ActTable, userAct } from './acts.ts';
import { leftoversIn } from './at-rest.ts';
import type { Guests } from './guests.ts';
import { Ledger } from './ledger.ts';
import { isAsAsked, type MachinesWorld, POOL } from './machines-world.ts';
import { freeStuck, takeBack } from './other-acts.ts';
import type { Population } from './population.ts';
import { untruthsIn } from './statuses.ts';

/** How long somebody waits who then lets forgotten VMs go, and deletes machines that are lost with their zone. */
const RELEASE_MS = 15 * 60_000;
/** How often somebody looks at deletions that do not come to their end. */
const LOOK_MS = 10 * 60_000;
const KINDS = ['machinedeployments', 'machinesets', 'machines', 'machineclasses'];

/** A MachineDeployment with all that it makes. */
export class Pool implements Population {
  readonly ledger: Ledger;
  protected readonly world: MachinesWorld;
  readonly #acts: ActTable;
  readonly #guests: Guests | undefined;

  constructor(world: MachinesWorld, acts: ActTable = USER_ACTS, guests?: Guests) {
    this.#guests = guests;
    this.world = world;
    this.ledger = new Ledger(world);
    this.#acts = acts;
  }

  act(names: readonly string[], random: Random): void {
    userAct(this.#acts, names, this.world, this.ledger, random);
  }

  mishap(random: Random): void {
    mishap(this.world, this.ledger, random);
  }

  renameHost(random: Random): void {
    renameHost(this.world, random);
  }

  setBack(): void {
    this.ledger.setBack();
  }

  calm(): void {
    if (this.world.pool?.spec?.paused === true) this.world.changePool({ spec: { paused: false } });
    takeBack(this.world, this.ledger, { mayResize: 'oddSize' in this.#acts });
  }

  expectProgress(withinMs: number): void {
    this.#releaseForgotten(withinMs);
    this.#giveUpZone();
    this.#giveUpRenamed();
    for (let ms = RELEASE_MS; ms < withinMs; ms += LOOK_MS) this.world.time.schedule(ms, () => freeStuck(this.world));
  }

  isAsAsked(): boolean {
    return isAsAsked(this.world);
  }

  settle(): void {
    this.ledger.settle();
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  leftovers(): readonly string[] {
    return [...leftoversIn(this.world), ...(this.#guests?.outdated() ?? [])];
  }

  untruths(): readonly string[] {
    return untruthsIn(this.world);
  }

  end(): void {
    const { world } = this;
    world.workload?.end();
    for (const plural of ['machinedeployments', 'machineclasses']) world.act('DELETE', world.pathOf(plural, POOL), {});
    world.act('DELETE', `/api/v1/namespaces/${world.namespace}/secrets/${POOL}`, {});
  }

  left(): readonly string[] {
    const { world } = this;
    return [
      ...KINDS.flatMap((plural) => (world.count(plural) > 0 ? [`${world.count(plural)} ${plural}`] : [])),
      ...(world.cloud.size > 0 ? [`${world.cloud.size} VMs`] : []),
      ...(world.nodes.length > 0 ? [`${world.nodes.length} Nodes`] : []),
    ];
  }

  shown(): string {
    const { pool, machines, cloud } = this.world;
    const shown = machines.map(({ metadata, spec, status }) => ({
      name: metadata.name,
      isDeleted: metadata.deletionTimestamp !== undefined,
      providerID: spec?.providerID,
      phase: status?.currentStatus?.phase,
      last: status?.lastOperation?.description?.slice(0, 160),
    }));
    return JSON.stringify({
      replicas: pool?.spec?.replicas,
      status: pool?.status?.conditions,
      vms: cloud.size,
      machines: shown,
    });
  }

  /** The same of machines whose hosts were renamed: several of them are a zone that does not come back under those names. */
  #giveUpRenamed(): void {
    const { world } = this;
    if (world.cloud.all().every(({ hostname }) => hostname === undefined)) return;
    world.time.schedule(RELEASE_MS, () => {
      if (!this.#isHeld) return;
      for (const { metadata } of world.machines) {
        const [{ hostname } = {}] = world.cloud.named(metadata.name);
        const isLost = hostname !== undefined && metadata.labels?.['node'] !== hostname;
        if (isLost && metadata.deletionTimestamp === undefined) deleteMachine(world, this.ledger, metadata.name);
      }
    });
  }

  get #isHeld(): boolean {
    const { conditions } = this.world.pool?.status ?? {};
    return conditions?.some(({ type, status }) => type === 'ReplacementHeld' && status === 'True') === true;
  }

  /** VMs whose Machines were forgotten are held until somebody says that they may go. */
  #releaseForgotten(withinMs: number): void {
    const { world } = this;
    if (!world.hasForgotten) return;
    const until = toTimestamp(world.time.epochMs + withinMs);
    world.time.schedule(RELEASE_MS, () => {
      if (world.count('machineclasses') === 0) return;
      const annotations = { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: until };
      world.act('PATCH', world.pathOf('machineclasses', POOL), { metadata: { annotations } });
      this.ledger.released();
    });
  }

  /**
   * Where nobody looks for VMs, machines that are lost together are taken for those of a zone that comes back, until somebody deletes them, as
   * the runbook of such zones has it.
   */
  #giveUpZone(): void {
    const { world } = this;
    if (!world.isHonest) return;
    world.time.schedule(RELEASE_MS, () => {
      if (!this.#isHeld) return;
      for (const { metadata } of world.machines) {
        if (world.cloud.named(metadata.name).length === 0) deleteMachine(world, this.ledger, metadata.name);
      }
    });
  }
}
