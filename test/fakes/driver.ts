import type { Capabilities, CreatedMachine, MachineRequest, VirtualMachine } from '../../pkg/driver/driver.ts';
import type { MachineDriver } from '../../pkg/driver/gated-driver.ts';

/** A driver whose answers a test sets, and whose calls it counts. Creating makes VMs that the other calls know. */
export class FakeDriver implements MachineDriver {
  readonly provider = 'sim';
  readonly calls: string[] = [];
  readonly vms = new Map<string, VirtualMachine>();
  /** What the next calls throw; shifted one by one. */
  failures: Partial<Record<string, unknown[]>> = {};
  methods: Set<'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs'> = new Set();
  idempotentCreate = true;
  listScope: Capabilities['listScope'] = 'class';
  userData = '';
  /** Calls wait for this before they answer. */
  hold: Promise<void> = Promise.resolve();
  /** Calls about machines wait for this before. */
  nextTurn: Promise<void> = Promise.resolve();
  turns = 0;

  turn(): Promise<void> {
    this.turns += 1;
    return this.nextTurn;
  }

  capabilities(): Promise<Capabilities> {
    const { methods, idempotentCreate, listScope } = this;
    return Promise.resolve({ contractVersion: 'v1', name: 'sim', idempotentCreate, listScope, methods });
  }

  async getStatus({ machine }: MachineRequest): Promise<VirtualMachine> {
    await this.#called('status');
    return this.#found(machine.metadata.name);
  }

  async create({ machine, secretData }: MachineRequest, _signal?: AbortSignal): Promise<CreatedMachine> {
    await this.#called('create');
    const { name } = machine.metadata;
    this.userData = Buffer.from(secretData['userData'] ?? []).toString();
    const vm = { providerID: `sim:///${name}`, nodeName: name, addresses: [] };
    this.vms.set(name, vm);
    return { ...vm, lastKnownState: undefined };
  }

  async initialize({ machine }: MachineRequest): Promise<VirtualMachine> {
    await this.#called('initialize');
    return this.#found(machine.metadata.name);
  }

  async delete({ machine }: MachineRequest): Promise<{ lastKnownState: string | undefined }> {
    await this.#called('delete');
    this.vms.delete(machine.metadata.name);
    return { lastKnownState: undefined };
  }

  list(_request?: Omit<MachineRequest, 'machine'>): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  volumeIDs(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  /** What GetMachineStatus throws for an unknown machine; set by tests that import DriverError. */
  notFound: () => unknown = () => new Error('set driver.notFound');

  #found(name: string): VirtualMachine {
    const vm = this.vms.get(name);
    if (vm === undefined) throw this.notFound();
    return vm;
  }

  async #called(call: string): Promise<void> {
    this.calls.push(call);
    await this.hold;
    const failure = this.failures[call]?.shift();
    if (failure !== undefined) throw failure;
  }
}
