import type { Clock } from '../../../pkg/base/clock/clock.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../../../pkg/driver/driver.ts';
import { DriverError } from '../../../pkg/driver/error.ts';
import {
  machineOf,
  notFound,
  onlyOne,
  requireMachineName,
  type MachineIdentity,
} from '../../../pkg/drivers/machine-identity.ts';
import { userDataOf } from '../../../pkg/drivers/spec-fields.ts';
import type { SimCloud } from './cloud.ts';
import { simulatedError, type FaultRule, type Faults, type DriverMethod } from './faults.ts';
import { parseProviderSpec, type SimProviderSpec } from './provider-spec.ts';
import type { SimSettings } from './settings.ts';
import { canonicalIDOf, otherIDOf, type SimVM } from './vm.ts';

export interface SimDriverDeps {
  readonly cloud: SimCloud;
  readonly faults: Faults;
  readonly clock: Clock;
  readonly settings: SimSettings;
  readonly capabilities?: Partial<Pick<Capabilities, 'idempotentCreate' | 'listScope' | 'methods'>>;
}

/** How long a stale read looks back, and a late answer takes, unless the rule says. */
const DEFAULT_DELAY_MS = 1_000;

/**
 * A driver for a simulated cloud, and the template for a real one. Each method: check the provider spec, find the VM by the
 * machine's identity, ask the cloud (here: wait and change a map), translate what the cloud said into a VM or a DriverError.
 */
export class SimDriver implements Driver {
  readonly #cloud: SimCloud;
  readonly #faults: Faults;
  readonly #clock: Clock;
  readonly #capabilities: Capabilities;
  readonly #calls = new Map<DriverMethod, number>();
  /** May be replaced at any time; calls that run keep the old ones. */
  settings: SimSettings;

  constructor(deps: SimDriverDeps) {
    this.#cloud = deps.cloud;
    this.#faults = deps.faults;
    this.#clock = deps.clock;
    this.settings = deps.settings;
    this.#capabilities = {
      contractVersion: 'v1',
      name: 'sim',
      idempotentCreate: true,
      listScope: 'class',
      methods: new Set(['InitializeMachine', 'ListMachines', 'GetVolumeIDs']),
      ...deps.capabilities,
    };
  }

  /** How often each method was called since the start or the last reset. */
  get calls(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#calls);
  }

  resetCalls(): void {
    this.#calls.clear();
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(this.#capabilities);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = identityOf(request, call);
    requireMachineName(machine);
    return await this.#run('CreateMachine', machine.name, call, async (rule) => {
      const spec = parseProviderSpec(request.machineClass.providerSpec);
      userDataOf(request.secretData); // a real driver hands it to the VM
      if (rule?.effect === 'delayed') {
        this.#makeLater(request, machine, spec, rule.delayMs);
        return await hang(call.signal);
      }
      const half = (spec.latencyMs.create ?? this.settings.latencyMs.create) / 2;

      await this.#wait(half, call.signal);
      // The check and the change are one step: a repeated call that runs at the same time finds this VM.
      const vm = (rule?.effect === 'duplicate' ? undefined : this.#made(machine)) ?? this.#make(request, machine, spec);
      await this.#wait(half, call.signal);

      if (rule?.effect === 'forget') this.#cloud.remove(vm.providerID, 'vanished');
      if (!vm.initialized) throw uninitialized(vm);
      return { ...virtualMachineOf(this.#answered(vm, rule), rule), lastKnownState: undefined };
    });
  }

  async initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = identityOf(request, call);
    return await this.#run('InitializeMachine', machine.name, call, async (rule) => {
      await this.#wait(this.settings.latencyMs.initialize, call.signal);
      const vm = this.#find(machine);
      if (vm === undefined) throw notFound(machine);
      const initialized = this.#cloud.change(vm.providerID, { initialized: true }) ?? vm;
      if (rule?.effect === 'forget') this.#cloud.remove(vm.providerID, 'vanished');
      return virtualMachineOf(initialized, rule);
    });
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = identityOf(request, call);
    return await this.#run('GetMachineStatus', machine.name, call, async (rule) => {
      await this.#wait(this.settings.latencyMs.status, call.signal);
      if (rule?.effect === 'stale' && !this.#seen(rule).some((vm) => this.#cloud.of(machine).includes(vm))) {
        throw notFound(machine);
      }
      const vm = this.#find(machine);
      if (vm === undefined) throw notFound(machine);
      if (rule?.effect === 'forget') this.#cloud.remove(vm.providerID, 'vanished');
      if (!vm.initialized) throw uninitialized(vm);
      return virtualMachineOf(this.#answered(vm, rule), rule);
    });
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    const machine = identityOf(request, call);
    return await this.#run('DeleteMachine', machine.name, call, async () => {
      // The provider spec is not looked at: a class that has become invalid must not keep VMs alive.
      const half = this.settings.latencyMs.delete / 2;

      await this.#wait(half, call.signal);
      const vms = this.#cloud.of(machine);
      for (const vm of vms) this.#cloud.remove(vm.providerID, 'deleted');
      await this.#wait(half, call.signal);

      if (vms.length === 0) throw notFound(machine);
      return { lastKnownState: undefined };
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { name, namespace } = request.machineClass.metadata;
    return await this.#run('ListMachines', '', call, async (rule) => {
      await this.#wait(this.settings.latencyMs.list, call.signal);
      const vms = rule?.effect === 'stale' ? this.#seen(rule) : this.#cloud.all();
      return vms
        .filter((vm) => vm.cluster === '' || vm.cluster === call.cluster)
        .filter(
          (vm) => vm.namespace === namespace && (this.#capabilities.listScope === 'cluster' || vm.className === name),
        )
        .map(({ providerID, machineName, machineUID, namespace: machineNamespace }) => ({
          providerID: shownID(providerID, rule),
          machineName,
          machineUID,
          machineNamespace,
        }));
    });
  }

  async getVolumeIDs(pvSpecs: readonly unknown[], call: DriverCall): Promise<readonly string[]> {
    return await this.#run('GetVolumeIDs', '', call, async () => {
      await this.#wait(this.settings.latencyMs.status, call.signal);
      return pvSpecs.map(volumeHandleOf).filter((handle) => handle !== undefined);
    });
  }

  async close(): Promise<void> {
    await Promise.resolve();
  }

  /** Counts the call and lets it go wrong where a rule says so. */
  async #run<T>(
    method: DriverMethod,
    machine: string,
    call: DriverCall,
    run: (rule: FaultRule | undefined) => Promise<T>,
  ): Promise<T> {
    this.#calls.set(method, (this.#calls.get(method) ?? 0) + 1);
    const rule = this.#faults.next(method, machine);
    if (rule?.effect === 'fail') throw simulatedError(rule);
    if (rule?.effect === 'hang') return await hang(call.signal);

    const result = await run(rule);
    if (rule?.effect === 'fail-after') throw simulatedError(rule);
    if (rule?.effect === 'late') await this.#wait(rule.delayMs ?? DEFAULT_DELAY_MS, call.signal);
    return result;
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (ms > 0) await this.#clock.sleep(ms, signal);
  }

  #find(machine: MachineIdentity): SimVM | undefined {
    return onlyOne(this.#cloud.of(machine), machine);
  }

  /** What a creation finds that was asked for before. */
  #made(machine: MachineIdentity): SimVM | undefined {
    return this.settings.createsBlindly === true ? undefined : this.#find(machine);
  }

  #make(request: MachineRequest, machine: MachineIdentity, spec: SimProviderSpec): SimVM {
    if (this.#cloud.size >= this.settings.quota) {
      throw new DriverError('ResourceExhausted', `quota of ${this.settings.quota} VMs is exhausted`);
    }
    const joinMs = spec.latencyMs.join ?? this.settings.latencyMs.join;
    return this.#cloud.create({
      cluster: machine.cluster,
      namespace: machine.namespace,
      className: request.machineClass.metadata.name,
      machineName: machine.name,
      machineUID: machine.uid,
      zone: spec.zone,
      size: spec.size,
      power: 'on',
      initialized: !spec.initialize,
      joinsAtMs: spec.join ? this.#clock.now() + joinMs : undefined,
      nodeLabels: spec.nodeLabels,
    });
  }

  /** What was asked for goes on at the provider, whether or not somebody waits for it. */
  #makeLater(
    request: MachineRequest,
    machine: MachineIdentity,
    spec: SimProviderSpec,
    delayMs = DEFAULT_DELAY_MS,
  ): void {
    this.#clock.schedule(delayMs, () => {
      if (this.#made(machine) === undefined && this.#cloud.size < this.settings.quota)
        this.#make(request, machine, spec);
    });
  }

  /** The VM that is told of: perhaps, or in part, another machine's, of the same zone. */
  #answered(vm: SimVM, rule: FaultRule | undefined): SimVM {
    if (rule?.effect !== 'other' && rule?.effect !== 'mixed-up') return vm;
    const nowMs = this.#clock.now();
    const isOther = ({ machineName, zone }: SimVM): boolean => machineName !== vm.machineName && zone === vm.zone;
    const others = this.#cloud.all().filter(isOther);
    if (rule.effect === 'mixed-up') return { ...vm, providerID: others.at(-1)?.providerID ?? vm.providerID };
    return others.findLast(({ joinsAtMs = Infinity }) => joinsAtMs < nowMs) ?? vm;
  }

  /** What a stale read shows. */
  #seen(rule: FaultRule): readonly SimVM[] {
    return this.#cloud.asOf(rule.delayMs ?? DEFAULT_DELAY_MS);
  }
}

/** Whose VM a call is about; ids of every form that was ever shown are understood. */
function identityOf(request: MachineRequest, call: DriverCall): MachineIdentity {
  const machine = machineOf(request, call);
  const { providerID } = machine;
  return { ...machine, providerID: providerID === undefined ? undefined : canonicalIDOf(providerID) };
}

function shownID(providerID: string, rule: FaultRule | undefined): string {
  return rule?.effect === 'other-id' ? otherIDOf(providerID) : providerID;
}

function virtualMachineOf(vm: SimVM, rule: FaultRule | undefined): VirtualMachine {
  return {
    providerID: shownID(vm.providerID, rule),
    nodeName: vm.machineName,
    addresses: [{ type: 'InternalIP', address: vm.address }],
  };
}

function uninitialized(vm: SimVM): DriverError {
  return new DriverError('Uninitialized', `VM ${vm.providerID} has not been initialized`, {
    result: { providerID: vm.providerID, nodeName: vm.machineName },
  });
}

/** `csi.volumeHandle` of a PersistentVolume's spec. */
function volumeHandleOf(spec: unknown): string | undefined {
  const csi: unknown = typeof spec === 'object' && spec !== null && 'csi' in spec ? spec.csi : undefined;
  if (typeof csi !== 'object' || csi === null || !('volumeHandle' in csi)) return undefined;
  return typeof csi.volumeHandle === 'string' ? csi.volumeHandle : undefined;
}

/** Never resolves; rejects when the call is given up. */
async function hang(signal: AbortSignal): Promise<never> {
  return await new Promise((_resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
