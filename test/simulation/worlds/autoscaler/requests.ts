import { Status } from 'nice-grpc';
import type { RpcOutcome } from '../../../../pkg/autoscaler/grpc-server.ts';
import type { Machine } from '../../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { namesListed } from '../../../../pkg/controllers/machine-deployment/scaling/scaler-handoff.ts';
import type { Ledger } from '../../world/ledger.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';

/** What an autoscaler asks for. */
export interface Wanted {
  readonly kind: 'increase' | 'delete' | 'decrease';
  /** By how many the size changes at most. */
  readonly delta: number;
  /** Machines that are named. */
  readonly machines: readonly string[];
}

/** A request, and what is known of it. */
interface Asked extends Wanted {
  state: 'running' | 'accepted' | 'refused' | 'unknown';
  isDone: boolean;
}

/** Nothing was changed, and nothing will be. */
const REFUSALS: ReadonlySet<number> = new Set([
  Status.INVALID_ARGUMENT,
  Status.FAILED_PRECONDITION,
  Status.NOT_FOUND,
  Status.UNAUTHENTICATED,
  Status.PERMISSION_DENIED,
]);
/** Which of several requests a change is the work of. */
const LIKELY: readonly Asked['state'][] = ['running', 'unknown', 'refused'];
/** What runs for so long has a Node, whatever was read before. */
const JOINED_MS = 60_000;

/** The sizes that a group may have. */
export interface Limits {
  readonly min: number;
  readonly max: number;
}

/** Watches over a node group: each change of its size and each Machine that goes has one request that asked for it. */
export class Requests {
  readonly #world: MachinesWorld;
  readonly #ledger: Ledger;
  readonly #limits: Limits;
  readonly #asked: Asked[] = [];
  /** Names that were put on the list of Machines that are to go, once each. */
  readonly #listed = new Set<string>();
  /** Names of Machines whose deletion was accepted. */
  readonly #accepted = new Set<string>();
  /** Since when Machines run, by name. */
  readonly #runningSinceMs = new Map<string, number>();
  /** By how many the size fell for which no Machine was named. */
  #anyone = 0;

  constructor(world: MachinesWorld, ledger: Ledger, limits: Limits) {
    this.#world = world;
    this.#ledger = ledger;
    this.#limits = limits;
    world.servers.control.objects.onChange(({ plural }, { type, object, previous }) => {
      if (plural === 'machinedeployments' && previous !== undefined && type === 'MODIFIED') {
        this.#lookAtSize(object as unknown as MachineDeployment, previous as unknown as MachineDeployment);
      }
      if (plural === 'machines') this.#lookAtMachine(object as unknown as Machine, previous as unknown as Machine);
    });
  }

  /** A request is about to be sent; the returned function is told what came of it. */
  begin(wanted: Wanted): (outcome: RpcOutcome | undefined) => void {
    const asked: Asked = { ...wanted, state: 'running', isDone: false };
    this.#asked.push(asked);
    return (outcome) => {
      asked.state =
        outcome === undefined
          ? 'unknown'
          : 'reply' in outcome
            ? 'accepted'
            : REFUSALS.has(outcome.code)
              ? 'refused'
              : 'unknown';
      if (asked.state === 'accepted') for (const name of asked.machines) this.#accepted.add(name);
      if (asked.state === 'refused' && asked.isDone) this.#ledger.find(`${describe(asked)} was refused, and was done`);
      const isMissed = asked.state === 'accepted' && asked.kind === 'increase' && !asked.isDone;
      if (isMissed) this.#ledger.find(`${describe(asked)} was accepted, and was not done`);
    };
  }

  /** All is as asked for: what was asked for before is done. */
  settle(): void {
    this.#anyone = 0;
    this.#asked.splice(0, this.#asked.length, ...this.#asked.filter(({ state }) => state === 'running'));
  }

  /** What was accepted and is not so, where all is as asked for. */
  undone(): readonly string[] {
    return this.#world.machines
      .filter(({ metadata }) => this.#accepted.has(metadata.name))
      .map(({ metadata }) => `Machine ${metadata.name} is there although its deletion was accepted`);
  }

  #lookAtSize(pool: MachineDeployment, before: MachineDeployment): void {
    const [size, old] = [pool.spec.replicas ?? 0, before.spec.replicas ?? 0];
    const had = namesListed(before);
    const added = [...namesListed(pool)].filter((name) => !had.has(name));
    if (size === old && added.length === 0) return;
    const { min, max } = this.#limits;
    if (size < min || size > max) this.#ledger.find(`the size is ${size}, which is not from ${min} to ${max}`);
    for (const name of added) {
      if (this.#listed.has(name)) this.#ledger.find(`Machine ${name} was chosen twice`);
      this.#listed.add(name);
      this.#ledger.named(name);
    }
    const fitting = this.#asked.filter((asked) => isFor(asked, size - old, added, (name) => this.#hasJoined(name)));
    const request = LIKELY.map((state) => fitting.find((asked) => asked.state === state)).find(
      (one) => one !== undefined,
    );
    if (request === undefined) {
      this.#ledger.find(
        `the size went from ${old} to ${size}, without ${added.join(', ') || 'any'}, and nobody asked for it`,
      );
      return;
    }
    request.isDone = true;
    if (request.state === 'refused') this.#ledger.find(`${describe(request)} was refused, and was done`);
    const alive = this.#world.machines.filter(
      ({ metadata }) => added.includes(metadata.name) && metadata.deletionTimestamp === undefined,
    );
    this.#anyone += Math.max(0, old - size - alive.length);
  }

  /** Unless the pool is rolled, only those go that were named, and as many others as the size fell for without a name. */
  #lookAtMachine(machine: Machine, before: Machine | undefined): void {
    const { name, deletionTimestamp } = machine.metadata;
    const runs = machine.status?.currentStatus?.phase === 'Running';
    if (!runs) this.#runningSinceMs.delete(name);
    else if (!this.#runningSinceMs.has(name)) this.#runningSinceMs.set(name, this.#world.time.elapsedMs);
    if (before === undefined || deletionTimestamp === undefined || before.metadata.deletionTimestamp !== undefined)
      return;
    const { pool } = this.#world;
    if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return;
    if (this.#listed.has(name) || this.#ledger.isAskedFor(name) || this.#ledger.hasRolled) return;
    if (!this.#ledger.health.isHealthy(before)) return;
    this.#anyone -= 1;
    if (this.#anyone < 0) this.#ledger.find(`healthy Machine ${name} was deleted, which no autoscaler has named`);
  }

  #hasJoined(name: string): boolean {
    return this.#world.time.elapsedMs - (this.#runningSinceMs.get(name) ?? Infinity) > JOINED_MS;
  }
}

/** Whether a change may be what a request asks for: not yet done, of that kind and size, and without Machines that work but those it names. */
function isFor(
  { kind, delta, machines, isDone, state }: Asked,
  change: number,
  added: readonly string[],
  hasJoined: (name: string) => boolean,
): boolean {
  if (isDone || state === 'accepted' || added.some((name) => hasJoined(name) && !machines.includes(name))) return false;
  if (kind === 'increase') return change === delta && added.length === 0;
  return change < 0 && -change <= delta;
}

function describe({ kind, delta, machines }: Wanted): string {
  return `request to ${kind} by ${delta}${machines.length === 0 ? '' : ` (${machines.join(', ')})`}`;
}
