import { randomBytes } from 'node:crypto';

import type { Node } from '../../../pkg/apis/wire.ts';
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
import type { Reader, Writer } from '../../../pkg/kube/client/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../../pkg/kube/client/errors.ts';
import { strategicPatch } from '../../../pkg/kube/client/patch.ts';
import { nodes } from '../../../pkg/kube/client/resource.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import {
  isMachineName,
  isVMOf,
  machineOf,
  notFound,
  onlyOne,
  requireMachineName,
  type MachineIdentity,
  type TaggedVM,
} from '../../../pkg/drivers/machine-identity.ts';
import { driverFailure } from '../../../pkg/drivers/api-failure.ts';
import { labelled } from '../../../pkg/drivers/labelled.ts';
import { nodeNameIn, kwokNode, kwokProviderID, vmOf, WITHOUT_VM } from './node.ts';
import { parseProviderSpec } from './provider-spec.ts';
import { KWOK_NAMESPACE_LABEL } from './tags.ts';

/** What the driver works with: the cluster in which its VMs are Nodes. */
export interface KwokDriverDeps {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly log: Logger;
  readonly close: () => Promise<void>;
}

const CAPABILITIES: Capabilities = {
  contractVersion: 'v1',
  name: 'kwok',
  idempotentCreate: true,
  listScope: 'class',
  methods: new Set(['ListMachines'] as const),
};

interface Found {
  readonly node: Node;
  readonly vm: TaggedVM;
}

/**
 * A driver whose VMs are Nodes that kwok keeps alive: hundreds of them, with their pods, in one process. It remembers nothing. A
 * VM exists as long as its Node does, and whoever deletes that Node has deleted the VM.
 */
export class KwokDriver implements Driver {
  readonly #deps: KwokDriverDeps;

  constructor(deps: KwokDriverDeps) {
    this.#deps = deps;
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(CAPABILITIES);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    const { machineClass } = request;
    const spec = parseProviderSpec(machineClass.providerSpec);
    return await asProvider(async () => {
      const { writer, log } = this.#deps;
      const { cluster, namespace, name: machineName, uid: machineUID } = machine;
      const providerID = kwokProviderID(machineName, randomBytes(4).toString('hex'));
      const className = machineClass.metadata.name;
      const vm: TaggedVM = { providerID, cluster, namespace, className, machineName, machineUID };
      try {
        // Looking and making are one step, and the API server takes it: there is one Node of a name.
        await writer.create('create', nodes, kwokNode(vm, machineClass, spec), { signal: call.signal });
      } catch (err) {
        if (!isAlreadyExists(err)) throw err;
        return { ...virtualMachineOf(await this.#existing(machine, call.signal)), lastKnownState: undefined };
      }
      log.info({ machine: machineName, providerID }, 'created a Node');
      return { ...virtualMachineOf(vm), lastKnownState: undefined };
    });
  }

  /** Not announced: a Node is complete when it is made. */
  async initializeMachine(): Promise<VirtualMachine> {
    return await Promise.reject(new DriverError('Unimplemented', 'machines of kwok do not require initialization'));
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = machineOf(request, call);
    return await asProvider(async () => {
      const vms = (await this.#of(machine, call.signal)).map(({ vm }) => vm);
      const vm = onlyOne(vms, machine);
      if (vm === undefined) throw notFound(machine);
      return virtualMachineOf(vm);
    });
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    const machine = machineOf(request, call);
    return await asProvider(async () => {
      const doomed = await this.#of(machine, call.signal);
      if (doomed.length === 0) throw notFound(machine);
      for (const { node, vm } of doomed) {
        await this.#remove(node, call.signal);
        this.#deps.log.info({ machine: vm.machineName, providerID: vm.providerID }, 'removed a Node');
      }
      return { lastKnownState: undefined };
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { name, namespace = '' } = request.machineClass.metadata;
    return await asProvider(async () => {
      const own = (await this.#all(namespace, call.signal)).filter(
        (vm) => (vm.cluster === '' || vm.cluster === call.cluster) && vm.className === name,
      );
      return own.map(({ providerID, machineName, machineUID }) => ({
        providerID,
        machineName,
        machineUID,
        machineNamespace: namespace,
      }));
    });
  }

  /** Not announced: machines of kwok have no volumes. */
  async getVolumeIDs(): Promise<readonly string[]> {
    return await Promise.reject(new DriverError('Unimplemented', 'machines of kwok have no volumes'));
  }

  async close(): Promise<void> {
    await this.#deps.close();
  }

  /** The machine's VM, after its Node could not be made because there is one of that name. */
  async #existing(machine: MachineIdentity, signal: AbortSignal): Promise<TaggedVM> {
    const node = await this.#node(machine.name, signal);
    // One that goes is not given out, even where a finalizer holds it: its machine would have a VM that is about to vanish.
    if (node === undefined || node.metadata.deletionTimestamp !== undefined) {
      throw new DriverError('Aborted', `Node ${machine.name} is still being deleted`);
    }
    const vm = vmOf(node);
    if (vm !== undefined && isVMOf(vm, machine)) return vm;
    throw new DriverError('AlreadyExists', `Node ${machine.name} already exists and does not belong to this machine`);
  }

  /** The VMs of a machine: its Node has its name, or the one in its provider id. */
  async #of(machine: MachineIdentity, signal: AbortSignal): Promise<readonly Found[]> {
    const names = new Set([machine.name, nodeNameIn(machine.providerID ?? '') ?? machine.name]);
    const found: Found[] = [];
    for (const name of names) {
      const node = isMachineName(name) ? await this.#node(name, signal) : undefined;
      const vm = node === undefined ? undefined : vmOf(node);
      if (node !== undefined && vm !== undefined && isVMOf(vm, machine)) found.push({ node, vm });
    }
    return found;
  }

  async #node(name: string, signal: AbortSignal): Promise<Node | undefined> {
    try {
      return await this.#deps.reader.get(nodes, { name }, { signal });
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  async #all(namespace: string, signal: AbortSignal): Promise<readonly TaggedVM[]> {
    const labelSelector = `${KWOK_NAMESPACE_LABEL}=${namespace}`;
    const found = await labelled(this.#deps.reader, nodes, { labelSelector, signal });
    return found.map(vmOf).filter((vm) => vm !== undefined);
  }

  /**
   * First the Node goes, then, where a finalizer holds it, its tags: ended in between, the VM is there still, and its deletion is
   * asked again. The other way around nobody would know of the Node any more.
   */
  async #remove(node: Node, signal: AbortSignal): Promise<void> {
    const { writer } = this.#deps;
    const { name, uid } = node.metadata;
    try {
      const held = await writer.delete('destroy', nodes, { name }, { uid }, { signal });
      if (held !== undefined) {
        await writer.patch('destroy', nodes, { name }, strategicPatch(held, WITHOUT_VM), { signal });
      }
    } catch (err) {
      // It went meanwhile, or another Node has its name.
      if (!isNotFound(err) && !isConflict(err)) throw err;
    }
  }
}

/** Runs what asks the API server, whose failures are those of the provider. */
async function asProvider<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (err) {
    throw driverFailure(err);
  }
}

function virtualMachineOf({ providerID, machineName }: TaggedVM): VirtualMachine {
  return { providerID, nodeName: machineName, addresses: [{ type: 'Hostname', address: machineName }] };
}
