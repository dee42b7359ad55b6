import type { Clock } from '../../../pkg/base/clock/clock.ts';
import { isVMOf, type MachineIdentity } from '../../../pkg/drivers/machine-identity.ts';
import type { Journal } from './journal.ts';
import { nodeNameOf, type PlantedVM, type SimVM } from './vm.ts';

/** A change of a VM. vanished: nobody of ours deleted it, as when a user does in the provider's console. */
export type CloudEvent = 'created' | 'changed' | 'deleted' | 'vanished';

/** How long stale reads can look back. */
const HISTORY_MS = 3_600_000;

/**
 * The VMs that exist, and nothing else: no latency, no faults. Changes are journalled before they take effect. All methods
 * are synchronous, so a check and the change that follows from it cannot be torn apart.
 */
export class SimCloud {
  readonly #clock: Clock;
  readonly #journal: Journal | undefined;
  readonly #vms = new Map<string, SimVM>();
  /** Provider ids by machine name: with thousands of VMs nothing may look through all of them. */
  readonly #named = new Map<string, Set<string>>();
  /** VMs that are gone, for reads that are stale; the oldest first. */
  readonly #gone: { readonly vm: SimVM; readonly atMs: number }[] = [];
  readonly #listeners: ((vm: SimVM, event: CloudEvent) => void)[] = [];
  /** Count of VMs ever made: provider ids are never used again, also after a restart. */
  #made = 0;

  constructor(parts: { clock: Clock; journal: Journal | undefined }) {
    this.#clock = parts.clock;
    this.#journal = parts.journal;
    for (const entry of parts.journal?.entries ?? []) {
      if (entry.op === 'remove') {
        const vm = this.#vms.get(entry.providerID);
        this.#forget(entry.providerID);
        if (vm !== undefined) this.#bury(vm, entry.atMs);
      } else {
        if (!this.#vms.has(entry.vm.providerID)) this.#made++;
        this.#remember(entry.vm);
      }
    }
  }

  get size(): number {
    return this.#vms.size;
  }

  all(): readonly SimVM[] {
    return [...this.#vms.values()];
  }

  get(providerID: string): SimVM | undefined {
    return this.#vms.get(providerID);
  }

  /** The VMs of a machine: one, none, or several after a fault. */
  of(machine: MachineIdentity): readonly SimVM[] {
    const known = machine.providerID === undefined ? undefined : this.#vms.get(machine.providerID);
    const named = this.named(machine.name).filter((vm) => vm !== known);
    return [...(known === undefined ? [] : [known]), ...named].filter((vm) => isVMOf(vm, machine));
  }

  /** The VMs of that name, whosever they are; also those whose Node has it. */
  named(name: string): readonly SimVM[] {
    const ids = [...(this.#named.get(name) ?? [])];
    return ids.map((id) => this.#vms.get(id)).filter((vm) => vm !== undefined);
  }

  /** What existed `agoMs` ago, as an eventually consistent API shows it. */
  asOf(agoMs: number): readonly SimVM[] {
    const thenMs = this.#clock.now() - agoMs;
    const gone = this.#gone.filter((entry) => entry.atMs > thenMs).map((entry) => entry.vm);
    return [...this.all(), ...gone].filter((vm) => vm.createdAtMs <= thenMs);
  }

  /** Makes a VM. Its provider id and address follow from a count, so that a run can be repeated. */
  create(vm: Omit<SimVM, 'providerID' | 'address' | 'createdAtMs'>): SimVM {
    const n = ++this.#made;
    const made: SimVM = {
      ...vm,
      providerID: `sim:///${vm.zone}/i-${String(n).padStart(8, '0')}`,
      address: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
      createdAtMs: this.#clock.now(),
    };
    this.#put(made, 'created');
    return made;
  }

  /** Makes a VM that no driver call asked for. */
  plant({ cluster = '', machineUID, zone = 'zone-1', join = false, ...whose }: PlantedVM): SimVM {
    const state = { size: 'small', power: 'on', initialized: true, nodeLabels: {} } as const;
    return this.create({ ...whose, ...state, cluster, machineUID, zone, joinsAtMs: join ? 0 : undefined });
  }

  /** Changes a VM that exists; undefined when it does not. What is as asked already is neither journalled nor told. */
  change(providerID: string, changes: Partial<Pick<SimVM, 'power' | 'initialized'>>): SimVM | undefined {
    const vm = this.#vms.get(providerID);
    if (vm === undefined) return undefined;
    const { power = vm.power, initialized = vm.initialized } = changes;
    if (power === vm.power && initialized === vm.initialized) return vm;
    const changed = { ...vm, power, initialized };
    this.#put(changed, 'changed');
    return changed;
  }

  /** Writes another Machine's UID into the tags of a VM, as a user does in the provider's console; undefined when there is no such VM. */
  retag(providerID: string, machineUID: string): SimVM | undefined {
    const vm = this.#vms.get(providerID);
    if (vm === undefined) return undefined;
    const changed = { ...vm, machineUID };
    this.#put(changed, 'changed');
    return changed;
  }

  /** Gives the host of a VM another name; undefined when there is no such VM. */
  rename(providerID: string, hostname: string): SimVM | undefined {
    const vm = this.#vms.get(providerID);
    if (vm === undefined) return undefined;
    this.#forget(providerID);
    const changed = { ...vm, hostname };
    this.#put(changed, 'changed');
    return changed;
  }

  /** Removes a VM; false when there is none. */
  remove(providerID: string, event: 'deleted' | 'vanished'): boolean {
    const vm = this.#vms.get(providerID);
    if (vm === undefined) return false;
    const atMs = this.#clock.now();
    this.#journal?.append({ op: 'remove', providerID, atMs });
    this.#forget(providerID);
    this.#bury(vm, atMs);
    this.#notify(vm, event);
    return true;
  }

  /** VMs that are gone, those before a restart included, as far back as stale reads look. */
  get gone(): readonly SimVM[] {
    return this.#gone.map(({ vm }) => vm);
  }

  #bury(vm: SimVM, atMs: number): void {
    this.#gone.push({ vm, atMs });
    while (atMs - (this.#gone[0]?.atMs ?? atMs) > HISTORY_MS) this.#gone.shift();
  }

  /** Calls `listener` after each change. */
  onEvent(listener: (vm: SimVM, event: CloudEvent) => void): void {
    this.#listeners.push(listener);
  }

  #put(vm: SimVM, event: CloudEvent): void {
    this.#journal?.append({ op: 'put', vm });
    this.#remember(vm);
    this.#notify(vm, event);
  }

  #remember(vm: SimVM): void {
    this.#vms.set(vm.providerID, vm);
    for (const name of [vm.machineName, nodeNameOf(vm)]) {
      const named = this.#named.get(name) ?? new Set();
      this.#named.set(name, named.add(vm.providerID));
    }
  }

  #forget(providerID: string): void {
    const vm = this.#vms.get(providerID);
    if (vm === undefined) return;
    this.#vms.delete(providerID);
    for (const name of [vm.machineName, nodeNameOf(vm)]) {
      const named = this.#named.get(name);
      named?.delete(providerID);
      if (named?.size === 0) this.#named.delete(name);
    }
  }

  #notify(vm: SimVM, event: CloudEvent): void {
    for (const listener of this.#listeners) listener(vm, event);
  }
}
