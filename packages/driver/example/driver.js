// @ts-check
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { DriverError, isVMOf, machineOf, notFound, onlyOne, requireMachineName } from 'machinist-driver';

/** @import { Capabilities, Driver, DriverCall, MachineRequest, TaggedVM, VirtualMachine } from 'machinist-driver' */

/**
 * The provider is a folder, and each VM a file in it: whatever a real one does with requests, this does with files. They are tagged and
 * written in one step, so a VM is never without its tags.
 *
 * @implements {Driver}
 */
export class FolderDriver {
  #folder;
  #log;

  /**
   * @param {string} folder
   * @param {import('machinist-driver').DriverContext<object>['log']} log
   */
  constructor(folder, log) {
    this.#folder = folder;
    this.#log = log;
  }

  /** @returns {Promise<Capabilities>} */
  async capabilities() {
    const methods = new Set(/** @type {const} */ (['ListMachines']));
    return { contractVersion: 'v1', name: 'folder', idempotentCreate: true, listScope: 'class', methods };
  }

  /** @param {MachineRequest} request @param {DriverCall} call */
  async createMachine(request, call) {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    const size = sizeIn(request.machineClass.providerSpec);
    // Looking and making are one step: nothing is awaited in between.
    const found = onlyOne(this.#of(machine), machine);
    if (found !== undefined) return { ...shown(found), lastKnownState: undefined };
    const vm = {
      providerID: `folder:///${call.cluster}/${machine.namespace}/${machine.name}/${machine.uid}`,
      cluster: call.cluster,
      namespace: machine.namespace,
      className: request.machineClass.metadata.name,
      machineName: machine.name,
      machineUID: machine.uid,
      size,
    };
    writeFileSync(this.#fileOf(vm), JSON.stringify(vm));
    this.#log.info({ machine: `${machine.namespace}/${machine.name}`, providerID: vm.providerID }, 'made a VM');
    return { ...shown(vm), lastKnownState: undefined };
  }

  /** @returns {Promise<VirtualMachine>} */
  async initializeMachine() {
    throw new DriverError('Unimplemented', 'VMs need no initialization');
  }

  /** @param {MachineRequest} request @param {DriverCall} call */
  async getMachineStatus(request, call) {
    const machine = machineOf(request, call);
    const vm = onlyOne(this.#of(machine), machine);
    if (vm === undefined) throw notFound(machine);
    return shown(vm);
  }

  /** @param {MachineRequest} request @param {DriverCall} call */
  async deleteMachine(request, call) {
    const machine = machineOf(request, call);
    const vms = this.#of(machine);
    if (vms.length === 0) throw notFound(machine);
    for (const vm of vms) rmSync(this.#fileOf(vm), { force: true });
    return { lastKnownState: undefined };
  }

  /** @param {Omit<MachineRequest, 'machine'>} request @param {DriverCall} call */
  async listMachines({ machineClass: { metadata } }, { cluster }) {
    return this.#all()
      .filter((vm) => vm.cluster === cluster && vm.namespace === metadata.namespace && vm.className === metadata.name)
      .map(({ namespace: machineNamespace, ...vm }) => ({ ...vm, machineNamespace }));
  }

  /** @returns {Promise<readonly string[]>} */
  async getVolumeIDs() {
    throw new DriverError('Unimplemented', 'there are no volumes');
  }

  async close() {
    // Nothing is held open.
  }

  /** @param {ReturnType<typeof machineOf>} machine */
  #of(machine) {
    return this.#all().filter((vm) => isVMOf(vm, machine));
  }

  /** @returns {readonly TaggedVM[]} */
  #all() {
    return readdirSync(this.#folder)
      .filter((file) => file.endsWith('.vm'))
      .map((file) => JSON.parse(readFileSync(join(this.#folder, file), 'utf8')));
  }

  /** @param {TaggedVM} vm */
  #fileOf(vm) {
    return join(this.#folder, `${Buffer.from(vm.providerID).toString('base64url')}.vm`);
  }
}

/** @param {TaggedVM} vm @returns {VirtualMachine} */
function shown({ providerID, machineName }) {
  return { providerID, nodeName: machineName, addresses: [] };
}

/** @param {unknown} providerSpec */
function sizeIn(providerSpec) {
  const { size = 'small' } = /** @type {{ size?: unknown }} */ (providerSpec ?? {});
  if (typeof size === 'string') return size;
  throw new DriverError('InvalidArgument', 'providerSpec.size: must be a text', { terminal: true });
}
