import {
  CANDIDATE_FOR_SET_ANNOTATION,
  CRITICAL_COMPONENTS_TAINT,
  UPDATE_FAILED_REASON_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { canonicalIDOf } from '../../../packages/providers/sim/vm.ts';
import { beUnready } from './acts.ts';
import type { MachinesWorld } from './machines-world.ts';
import { integerIn, seededRandom } from './seeded-random.ts';

/** How long an agent takes for an update, and who monitors the critical components of a Node until they run. */
const UPDATE_MS = [5_000, 120_000] as const;
const COMPONENTS_MS = [3_000, 30_000] as const;
const REBOOT_MS = [10_000, 60_000] as const;
/** Shares of the updates that fail, and of those of which the agent says nothing. */
const FAILED = 0.12;
const SILENT = 0.08;
const REBOOTS = 0.3;

/** What runs in the guests of a pool: agents that update them in place, and critical components. */
export class Guests {
  readonly #world: MachinesWorld;
  readonly #random: Random;
  /** Versions of the template that VMs run, by provider id. */
  readonly #installed = new Map<string, string>();
  /** What an agent works on, or has said nothing of: one update each. */
  readonly #begun = new Set<string>();

  constructor(world: MachinesWorld, seed: number) {
    this.#world = world;
    this.#random = seededRandom(seed, 'guests');
    world.cloud.onEvent(({ providerID, machineName }, event) => {
      if (event !== 'created') return;
      const machine = world.machines.find(({ metadata }) => metadata.name === machineName);
      this.#installed.set(providerID, versionOf(machine));
    });
    // Nobody knows of updates since a backup, where the Nodes are in it too.
    world.servers.control.objects.onRestore(() => this.#installed.clear());
    world.servers.target.objects.onChange(({ plural }, { type, object }) => {
      if (plural === 'nodes' && type !== 'DELETED') this.#look(object as object as Node);
    });
  }

  /** Machines that run another version than the pool asks for. */
  outdated(): string[] {
    const asked = versionOf(this.#world.pool?.spec.template);
    return this.#world.cloud.all().flatMap(({ providerID, machineName }) => {
      const runs = this.#installed.get(providerID);
      return runs === undefined || runs === asked
        ? []
        : [`VM ${providerID} of ${machineName} runs version ${runs}, not ${asked}`];
    });
  }

  #look(node: Node): void {
    const { uid } = node.metadata;
    const update = updateOf(node);
    if (update !== undefined) this.#soon(`${uid} ${update}`, UPDATE_MS, () => this.#update(node, update));
    if (hasComponentsTaint(node)) this.#soon(`${uid} components`, COMPONENTS_MS, () => this.#runComponents(node));
  }

  #soon(what: string, [least, most]: readonly [number, number], act: () => void): void {
    if (this.#begun.has(what)) return;
    this.#begun.add(what);
    this.#world.time.schedule(integerIn(this.#random, least, most), act);
  }

  #update({ metadata: { name, uid } }: Node, update: string): void {
    const [outcome, reboots, ms] = [this.#random(), this.#random() < REBOOTS, integerIn(this.#random, ...REBOOT_MS)];
    const node = this.#nodeOf(uid);
    const vm = this.#world.cloud.get(canonicalIDOf(node?.spec?.providerID ?? ''));
    if (node === undefined || updateOf(node) !== update || vm?.power !== 'on') return;
    if (outcome < SILENT) return this.#world.trace.add(`the agent of ${name} says nothing`);
    if (reboots) beUnready(this.#world, [name], 'not-ready', ms);
    const fails = outcome < SILENT + FAILED;
    const set = this.#world.sets.find(
      ({ metadata }) => metadata.name === node.metadata.annotations?.[CANDIDATE_FOR_SET_ANNOTATION],
    );
    if (!fails && set !== undefined) this.#installed.set(vm.providerID, versionOf(set.spec.template));
    this.#patch(name, {
      metadata: {
        labels: { [UPDATE_RESULT_LABEL]: fails ? 'failed' : 'successful' },
        ...(fails && { annotations: { [UPDATE_FAILED_REASON_ANNOTATION]: 'no space left' } }),
      },
    });
  }

  #runComponents({ metadata: { name, uid } }: Node): void {
    this.#begun.delete(`${uid} components`);
    const node = this.#nodeOf(uid);
    if (node === undefined) return;
    this.#patch(name, { spec: { taints: node.spec?.taints?.filter(({ key }) => key !== CRITICAL_COMPONENTS_TAINT) } });
  }

  #nodeOf(uid: string): Node | undefined {
    return this.#world.nodes.find(({ metadata }) => metadata.uid === uid);
  }

  #patch(name: string, change: object): void {
    this.#world.act('PATCH', `/api/v1/nodes/${name}`, change, 'target');
  }
}

/** Which update a Node waits for, by the time at which it was ready for it. */
function updateOf({ metadata, status }: Node): string | undefined {
  const { reason, lastTransitionTime } = status?.conditions?.find(({ type }) => type === 'InPlaceUpdate') ?? {};
  const hasResult = metadata.labels?.[UPDATE_RESULT_LABEL] !== undefined;
  return reason === 'ReadyForUpdate' && !hasResult ? lastTransitionTime : undefined;
}

function hasComponentsTaint({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === CRITICAL_COMPONENTS_TAINT) === true;
}

function versionOf(
  object: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } } | undefined,
): string {
  return object?.metadata?.annotations?.['version'] ?? '';
}
