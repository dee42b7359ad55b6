import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

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
import { messageOf } from '../../../pkg/driver/errno.ts';
import { DriverError } from '../../../pkg/driver/error.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import {
  isVMOf,
  machineOf,
  notFound,
  onlyOne,
  requireMachineName,
  type MachineIdentity,
} from '../../../pkg/drivers/machine-identity.ts';
import { isAlive } from '../../../pkg/drivers/process-identity.ts';
import { endKubelet, findKubelet, startKubelet } from './kubelet.ts';
import { boundLog, LOG_FILE } from './log-files.ts';
import { freePorts } from './ports.ts';
import { parseProviderSpec } from './provider-spec.ts';
import { bootstrapKubeconfigOf } from './user-data.ts';
import { VMFolders } from './vm-folders.ts';
import type { LocalVM } from './vm.ts';

export interface LocalDriverDeps {
  /** Locked by the caller; see StateDirectory. */
  readonly stateDirectory: string;
  /** The program kubemark. */
  readonly kubeletBinary: string;
  /** Machines that may exist at once; each takes about 80 MB. */
  readonly capacity: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const LOG_CHECK_MS = 10_000;

const CAPABILITIES: Capabilities = {
  contractVersion: 'v1',
  name: 'local',
  idempotentCreate: true,
  listScope: 'class',
  methods: new Set(['ListMachines'] as const),
};

/**
 * A driver whose machines are processes of this host: real kubelets, which join with the bootstrap token of their user data,
 * over a container runtime in memory. They outlive the driver, which finds them again. A machine whose kubelet has died is
 * there still, switched off, until it is deleted.
 */
export class LocalDriver implements Driver {
  readonly #deps: LocalDriverDeps;
  readonly #folders: VMFolders;
  readonly #vms = new Map<string, LocalVM>();
  /** Changes run one after another: a repeated creation finds what the first has made. */
  #changes: Promise<unknown> = Promise.resolve();
  #cancelLogCheck: () => void = () => undefined;

  constructor(deps: LocalDriverDeps) {
    this.#deps = deps;
    this.#folders = new VMFolders(deps.stateDirectory);
    for (const vm of this.#folders.load()) this.#recover(vm);
    this.#checkLogs();
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(CAPABILITIES);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    const spec = parseProviderSpec(request.machineClass.providerSpec);
    const bootstrapKubeconfig = bootstrapKubeconfigOf(request.secretData);
    return await this.#alone(async () => {
      const existing = this.#find(machine);
      if (existing !== undefined) return { ...virtualMachineOf(existing), lastKnownState: undefined };

      call.signal.throwIfAborted();
      this.#requireCapacity();
      const vm = await this.#prepare(machine, request.machineClass.metadata.name);
      const { kubeletBinary: binary, log } = this.#deps;
      try {
        const folder = this.#folders.path(vm.id);
        const process = await startKubelet({ binary, folder, vm, spec, bootstrapKubeconfig });
        this.#keep({ ...vm, process });
        log.info({ machine: vm.machineName, providerID: vm.providerID, pid: process.pid }, 'started machine');
      } catch (err) {
        await this.#abandon(vm);
        throw new DriverError('Internal', `starting ${binary}: ${messageOf(err)}`, { cause: err });
      }
      return { ...virtualMachineOf(vm), lastKnownState: undefined };
    });
  }

  /** Not announced: a local machine is complete when it starts. */
  async initializeMachine(): Promise<VirtualMachine> {
    return await Promise.reject(new DriverError('Unimplemented', 'local machines do not require initialization'));
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const machine = machineOf(request, call);
    const vm = await this.#alone(() => Promise.resolve(this.#find(machine)));
    if (vm === undefined) throw notFound(machine);
    return virtualMachineOf(vm);
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    const machine = machineOf(request, call);
    return await this.#alone(async () => {
      const doomed = this.#of(machine);
      if (doomed.length === 0) throw notFound(machine);
      for (const vm of doomed) await this.#remove(vm);
      return { lastKnownState: undefined };
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { name, namespace } = request.machineClass.metadata;
    return await this.#alone(() => {
      const own = [...this.#vms.values()].filter(
        (vm) => vm.cluster === call.cluster && vm.className === name && vm.namespace === namespace,
      );
      return Promise.resolve(
        own.map(({ providerID, machineName, machineUID, namespace: machineNamespace }) => ({
          providerID,
          machineName,
          machineUID,
          machineNamespace,
        })),
      );
    });
  }

  /** Not announced: local machines have no volumes. */
  async getVolumeIDs(): Promise<readonly string[]> {
    return await Promise.reject(new DriverError('Unimplemented', 'local machines have no volumes'));
  }

  /** Ends the driver's own work; the machines run on. */
  async close(): Promise<void> {
    this.#cancelLogCheck();
    await this.#changes.catch(() => undefined);
  }

  async #alone<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#changes.catch(() => undefined).then(run);
    this.#changes = turn;
    return await turn;
  }

  #of(machine: MachineIdentity): readonly LocalVM[] {
    return [...this.#vms.values()].filter((vm) => isVMOf(vm, machine));
  }

  #find(machine: MachineIdentity): LocalVM | undefined {
    return onlyOne(this.#of(machine), machine);
  }

  #requireCapacity(): void {
    const { capacity } = this.#deps;
    if (this.#vms.size >= capacity) {
      throw new DriverError('ResourceExhausted', `this host is limited to ${capacity} machines (--capacity)`);
    }
  }

  /** Writes a machine down before its process is started, so that a crash in between leaves no process unknown. */
  async #prepare(machine: MachineIdentity, className: string): Promise<LocalVM> {
    const taken = new Set([...this.#vms.values()].flatMap((vm) => [vm.kubeletPort, vm.readOnlyPort]));
    const [kubeletPort = 0, readOnlyPort = 0] = await freePorts(2, taken);
    const id = `${machine.name}-${randomBytes(4).toString('hex')}`;
    const vm: LocalVM = {
      id,
      providerID: `local:///${id}`,
      cluster: machine.cluster,
      namespace: machine.namespace,
      className,
      machineName: machine.name,
      machineUID: machine.uid,
      kubeletPort,
      readOnlyPort,
      process: undefined,
    };
    this.#folders.save(vm);
    return vm;
  }

  #keep(vm: LocalVM): void {
    this.#folders.save(vm);
    this.#vms.set(vm.id, vm);
  }

  async #remove(vm: LocalVM): Promise<void> {
    const { clock, log } = this.#deps;
    if (vm.process !== undefined) await endKubelet(vm.process, clock);
    this.#vms.delete(vm.id);
    this.#folders.remove(vm.id);
    log.info({ machine: vm.machineName, providerID: vm.providerID }, 'removed machine');
  }

  /** Undoes a creation that failed, whether or not its process was started. */
  async #abandon(vm: LocalVM): Promise<void> {
    const process = findKubelet(this.#folders.path(vm.id));
    if (process !== undefined) await endKubelet(process, this.#deps.clock);
    this.#folders.remove(vm.id);
  }

  /** A machine whose creation was cut off before its process was started never existed. */
  #recover(vm: LocalVM): void {
    const { log } = this.#deps;
    const process = vm.process ?? findKubelet(this.#folders.path(vm.id));
    if (process === undefined) return this.#folders.remove(vm.id);
    this.#keep({ ...vm, process });
    log.info(
      { machine: vm.machineName, providerID: vm.providerID, isRunning: isAlive(process) },
      'recovered a running machine',
    );
  }

  #checkLogs(): void {
    const { clock, log } = this.#deps;
    for (const { id } of this.#vms.values()) {
      try {
        boundLog(join(this.#folders.path(id), LOG_FILE));
      } catch (err) {
        log.warn({ err, id }, 'could not truncate a log');
      }
    }
    this.#cancelLogCheck = clock.schedule(LOG_CHECK_MS, () => this.#checkLogs());
  }
}

function virtualMachineOf(vm: LocalVM): VirtualMachine {
  return {
    providerID: vm.providerID,
    nodeName: vm.machineName,
    addresses: [
      { type: 'InternalIP', address: '127.0.0.1' },
      { type: 'Hostname', address: vm.machineName },
    ],
  };
}
