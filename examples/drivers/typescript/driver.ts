import { createHash, randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  type Capabilities,
  type CreatedMachine,
  type Driver,
  type DriverCall,
  type DriverContext,
  DriverError,
  isVMOf,
  type ListedMachine,
  type MachineIdentity,
  type MachineRequest,
  machineOf,
  notFound,
  onlyOne,
  requireMachineName,
  type TaggedVM,
  type VirtualMachine,
} from 'machinist-driver';

/** What the provider knows of a virtual machine. */
interface VM extends TaggedVM {
  readonly size?: string;
}

/** The one account of this cloud. */
const ACCEPTED = 'example-token';

/**
 * The provider is a folder, and each VM a file in it: whatever a real one does with requests, this does with files. A real one also waits:
 * give what it waits for `call.signal`.
 */
export class FolderDriver implements Driver {
  readonly #folder: string;
  readonly #log: DriverContext<object>['log'];

  constructor(folder: string, log: DriverContext<object>['log']) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
    this.#log = log;
  }

  async capabilities(): Promise<Capabilities> {
    const methods = new Set(['ListMachines', 'GetVolumeIDs'] as const);
    return { contractVersion: 'v1', name: 'folder-driver', idempotentCreate: true, listScope: 'class', methods };
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    const size = sizeIn(request.machineClass.providerSpec);
    // Look before you make: the call may be a repeated one.
    const found = onlyOne(this.#vmsOf(machine, request), machine);
    if (found !== undefined) return { ...shown(found), lastKnownState: undefined };
    const { cluster, namespace, name, uid } = machine;
    const vm: VM = {
      providerID: `folder-driver:///${cluster}/${namespace}/${name}/${uid}`,
      cluster,
      namespace,
      className: request.machineClass.metadata.name,
      machineName: name,
      machineUID: uid,
      size,
    };
    // A real VM is started with request.secretData['userData'].
    this.#make(vm);
    this.#log.info({ machine: `${namespace}/${name}`, providerID: vm.providerID }, 'made a VM');
    return { ...shown(vm), lastKnownState: undefined };
  }

  async initializeMachine(): Promise<VirtualMachine> {
    throw new DriverError('Unimplemented', 'VMs need no initialization');
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = machineOf(request, call);
    const vm = onlyOne(this.#vmsOf(machine, request), machine);
    if (vm === undefined) throw notFound(machine);
    return shown(vm);
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: undefined }> {
    for (const vm of this.#vmsOf(machineOf(request, call), request)) {
      rmSync(this.#fileOf(vm), { force: true });
      this.#log.info({ providerID: vm.providerID }, 'deleted a VM');
    }
    return { lastKnownState: undefined };
  }

  /** What is listed and has no machine is deleted: never a VM of another cluster or namespace. Pages are made of it by serveDriver. */
  async listMachines(
    request: Omit<MachineRequest, 'machine'>,
    { cluster }: DriverCall,
  ): Promise<readonly ListedMachine[]> {
    const { namespace, name } = request.machineClass.metadata;
    return this.#list(request)
      .filter((vm) => vm.cluster === cluster && vm.namespace === namespace && vm.className === name)
      .map(({ providerID, machineName, machineUID, namespace: machineNamespace }) => ({
        providerID,
        machineName,
        machineUID,
        machineNamespace,
      }));
  }

  /** Those volumes that are the provider's, in the order asked for. */
  async getVolumeIDs(specs: readonly { readonly csi?: { driver: string; volumeHandle: string } }[]): Promise<string[]> {
    return specs.flatMap(({ csi }) => (csi?.driver === 'folder-driver' ? [csi.volumeHandle] : []));
  }

  async close(): Promise<void> {
    // Nothing is held open.
  }

  /** Made with its tags in one step: it is never there without them. A name is given to one VM only, also between several drivers. */
  #make(vm: VM): void {
    const aside = join(this.#folder, `${randomUUID()}.new`);
    try {
      writeFileSync(aside, JSON.stringify(vm), { flush: true });
      linkSync(aside, this.#fileOf(vm));
    } catch (cause) {
      const { code = '', message } = cause as NodeJS.ErrnoException;
      // What a real provider calls a quota.
      if (['ENOSPC', 'EDQUOT'].includes(code)) throw new DriverError('ResourceExhausted', message, { cause });
      if (code !== 'EEXIST') throw cause;
      // Another call makes it at this moment. This one is asked again, and then finds it.
      throw new DriverError('Aborted', 'another call makes the VM of this machine', { cause });
    } finally {
      rmSync(aside, { force: true });
    }
  }

  #vmsOf(machine: MachineIdentity, request: Pick<MachineRequest, 'secretData'>): readonly VM[] {
    return this.#list(request).filter((vm) => isVMOf(vm, machine));
  }

  /** All VMs of the account. A real provider filters by tags. */
  #list({ secretData }: Pick<MachineRequest, 'secretData'>): readonly VM[] {
    const token = new TextDecoder().decode(secretData['token']);
    if (token !== ACCEPTED) throw new DriverError('Unauthenticated', 'the token is not accepted');
    return readdirSync(this.#folder)
      .filter((file) => file.endsWith('.json'))
      .map((file): VM => JSON.parse(readFileSync(join(this.#folder, file), 'utf8')));
  }

  /** Hashes the ID, so that nothing that came over the wire becomes part of a path. */
  #fileOf({ providerID }: VM): string {
    return join(this.#folder, `${createHash('sha256').update(providerID).digest('hex')}.json`);
  }
}

function shown({ providerID, machineName }: VM): VirtualMachine {
  return { providerID, nodeName: machineName, addresses: [] };
}

/** Reads the settings of the class; of a wrong one the answer names the member. */
function sizeIn(providerSpec: unknown): string {
  const spec = providerSpec ?? {};
  if (typeof spec !== 'object' || Array.isArray(spec)) {
    throw new DriverError('InvalidArgument', 'providerSpec: must be an object', { terminal: true });
  }
  const { size = 'small' } = spec as { size?: unknown };
  if (typeof size === 'string') return size;
  throw new DriverError('InvalidArgument', 'providerSpec.size: must be a text', { terminal: true });
}
