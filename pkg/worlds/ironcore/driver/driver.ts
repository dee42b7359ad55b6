import type { IronCoreMachine } from '../api/machine.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import type { Logger } from '../../../base/log/logger.ts';
import { driverFailure } from '../../../drivers/api-failure.ts';
import { machineOf, notFound, requireMachineName } from '../../../drivers/machine-identity.ts';
import { SecretClusters, type SecretCluster } from '../../../drivers/secret-clusters.ts';
import { userDataOf } from '../../../drivers/spec-fields.ts';
import { reportingFailures } from '../../../drivers/reported-failure.ts';
import { ignitionFor } from './ignition.ts';
import { ignitionSecretFor, ironCoreMachineFor, ironCoreProgressOf, type Progress, classZoneOf } from './machine.ts';
import {
  ironCoreMachineText,
  ensureSecret,
  findMachine,
  hasPool,
  hasSecret,
  listMachines,
  makeMachine,
  readMachine,
  removed,
  removeSecrets,
  type MachineScope,
} from './objects.ts';
import { labelsIn, parseProviderSpec } from './provider-spec.ts';
import { isTagged, placeIn, ironCoreProviderID, machineTagsOf } from './tags.ts';
import { membersOf } from '../../../apis/members.ts';
import { ironCoreMachines } from '../api/resources.ts';

export interface IronCoreDriverDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of the CSI driver whose volumes machines have. */
  readonly csiDriverName: string;
}

const CAPABILITIES: Capabilities = {
  contractVersion: 'v1',
  name: 'ironcore',
  idempotentCreate: true,
  listScope: 'class',
  methods: new Set(['InitializeMachine', 'ListMachines', 'GetVolumeIDs'] as const),
};

/** Between two looks at a Machine, at first and at most. */
const FIRST_POLL_MS = 300;
const MAX_POLL_MS = 5_000;
const GROWTH = 1.5;
/** A Machine that no pool has taken for so long waits for capacity. */
const PLACED_WITHIN_MS = 10_000;
/** What is left of a call's time when it is called unfinished. */
const MARGIN_MS = 3_000;

interface Call extends MachineScope {
  /** When it is called unfinished, by the monotonic clock. */
  readonly endMs: number;
}

/**
 * A driver whose machines are Machines of IronCore, in the cluster that the Secret of the class leads to, in the place of Gardener's: it
 * takes the same classes and Secrets, and finds what that has made. It keeps nothing but connections.
 */
export class IronCoreDriver implements Driver {
  readonly #deps: IronCoreDriverDeps;
  readonly #clusters: SecretClusters;

  constructor(deps: IronCoreDriverDeps) {
    this.#deps = deps;
    this.#clusters = new SecretClusters({ clock: deps.clock, userAgent: 'machinist-ironcore' });
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(CAPABILITIES);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const machine = machineOf(request, call);
    requireMachineName(machine);
    return await this.#run(request, async () => {
      const { machineClass, secretData } = request;
      const spec = parseProviderSpec(machineClass.providerSpec);
      const ignition = ignitionFor(spec, machine.name, userDataOf(secretData));
      const about = await this.#about(request, call);
      const { at, signal } = about;
      const isZoneAPool = await hasPool(at, classZoneOf(machineClass), signal);
      const wanted = ironCoreMachineFor({ machine, machineClass, spec, namespace: at.namespace, isZoneAPool });
      const { made, isNew } = await makeMachine(about, wanted);
      if (isNew)
        this.#deps.log.info({ machine: machine.name, namespace: at.namespace }, 'created a Machine of IronCore');
      // After its Machine, which owns it: what is left of a creation that was given up is always found as a Machine. That of an earlier
      // provider has its Secret.
      if (isTagged(made)) {
        await ensureSecret(about, ignitionSecretFor(made, machine, machineClass.metadata.name, spec, ignition));
      }
      await this.#requirePool(about);
      return { ...virtualMachineOf(at, machine.name), lastKnownState: undefined };
    });
  }

  async initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    return await this.#run(request, async () => {
      const about = await this.#about(request, call);
      const found = await this.#poll(about, ({ kind }) => kind === 'running' || kind === 'going', about.endMs);
      if (found === undefined) throw notFound(about.machine);
      const { kind, why } = ironCoreProgressOf(found);
      if (kind === 'running') return virtualMachineOf(about.at, found.metadata.name);
      const code = kind === 'going' ? 'Aborted' : 'Uninitialized';
      throw new DriverError(code, `${ironCoreMachineText(found)} is not running: ${why}`);
    });
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    return await this.#run(request, async () => {
      const about = await this.#about(request, call);
      const found = await findMachine(about);
      if (found === undefined) throw notFound(about.machine);
      const vm = virtualMachineOf(about.at, found.metadata.name);
      const { kind, why } = ironCoreProgressOf(found);
      if (kind === 'running' || kind === 'going') return vm;
      const { providerID, nodeName } = vm;
      const text = `${ironCoreMachineText(found)} is not running yet: ${why}`;
      // Without the VM, CreateMachine is called once more: it makes the Secret that is missing, and says that no pool has room.
      const isBegun = isTagged(found) && (kind === 'unplaced' || !(await hasSecret(about, found)));
      throw new DriverError('Uninitialized', text, isBegun ? {} : { result: { providerID, nodeName } });
    });
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    return await this.#run(request, async () => {
      const about = await this.#about(request, call);
      const found = await findMachine(about);
      // As long as the Machine is there its deletion is asked again: nothing is left if this is the last thing that happens.
      const hadSecrets = await removeSecrets(about, found);
      if (found !== undefined) await this.#remove(about, found);
      else if (!hadSecrets) throw notFound(about.machine);
      return { lastKnownState: undefined };
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { name: className, namespace = '' } = request.machineClass.metadata;
    return await this.#run(request, async () => {
      const at = await this.#clusters.open(request.secretData);
      const labels = labelsIn(request.machineClass.providerSpec);
      const found = await listMachines(at, namespace, labels, call.signal);
      return found.flatMap((one) => {
        const vm = machineTagsOf(one);
        const isOurs = isTagged(one);
        if (isOurs && (vm.cluster !== call.cluster || vm.className !== className)) return [];
        const { providerID, machineName, machineUID } = vm;
        return [{ providerID, machineName, machineUID, machineNamespace: isOurs ? vm.namespace : undefined }];
      });
    });
  }

  async getVolumeIDs(pvSpecs: readonly unknown[]): Promise<readonly string[]> {
    const { csiDriverName } = this.#deps;
    const ids = pvSpecs.map((spec) => csiVolumeIDOf(spec, csiDriverName));
    return await Promise.resolve(ids.filter((id) => id !== undefined));
  }

  async close(): Promise<void> {
    await this.#clusters.close();
  }

  async #about(request: MachineRequest, call: DriverCall): Promise<Call> {
    const endMs = this.#deps.clock.monotonicMs() + call.timeoutMs - MARGIN_MS;
    const machine = machineOf(request, call);
    const at = await this.#clusters.open(request.secretData);
    // The Secret may name another namespace by now. The Machine stays where it was made, and must not be taken for gone.
    const { namespace } = placeIn(machine.providerID) ?? at;
    return {
      at: { ...at, namespace },
      machine,
      // A class that has become invalid must not keep machines alive.
      labels: labelsIn(request.machineClass.providerSpec),
      signal: call.signal,
      endMs,
    };
  }

  /** Resolves when a pool has the Machine. One that none takes waits for capacity, and says so. */
  async #requirePool(about: Call): Promise<void> {
    const endMs = Math.min(about.endMs, this.#deps.clock.monotonicMs() + PLACED_WITHIN_MS);
    const found = await this.#poll(about, ({ kind }) => kind !== 'unplaced', endMs);
    if (found === undefined)
      throw new DriverError('Aborted', `Machine ${about.machine.name} of IronCore was deleted in the meantime`);
    const { kind, why } = ironCoreProgressOf(found);
    if (kind === 'unplaced')
      throw new DriverError('ResourceExhausted', `${ironCoreMachineText(found)} is not assigned to a pool: ${why}`);
    if (kind === 'going') throw new DriverError('Aborted', `${ironCoreMachineText(found)} is being deleted: ${why}`);
  }

  /** Looks at the Machine until it has come far enough, or until the time is over. Undefined when there is none. */
  async #poll(
    about: Call,
    isEnough: (progress: Progress) => boolean,
    endMs: number,
  ): Promise<IronCoreMachine | undefined> {
    const { clock } = this.#deps;
    for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * GROWTH, MAX_POLL_MS)) {
      const found = await findMachine(about);
      if (found === undefined || isEnough(ironCoreProgressOf(found)) || clock.monotonicMs() + pauseMs >= endMs)
        return found;
      await clock.sleep(pauseMs, about.signal);
    }
  }

  /** Resolves when the Machine is gone: until then its kubelet could make its Node anew. */
  async #remove(about: Call, found: IronCoreMachine): Promise<void> {
    const { clock, log } = this.#deps;
    const { name, namespace, uid } = found.metadata;
    let left = await removed(about.at, ironCoreMachines, found, about.signal);
    for (let pauseMs = FIRST_POLL_MS; left !== undefined; pauseMs = Math.min(pauseMs * GROWTH, MAX_POLL_MS)) {
      if (clock.monotonicMs() + pauseMs >= about.endMs) {
        throw new DriverError(
          'Aborted',
          `${ironCoreMachineText(found)} is being deleted: ${ironCoreProgressOf(left).why}`,
        );
      }
      await clock.sleep(pauseMs, about.signal);
      const now = await readMachine(about.at, name, about.signal);
      left = now?.metadata.uid === uid ? now : undefined;
    }
    log.info({ machine: name, namespace }, 'removed a Machine of IronCore');
  }

  /** Failures of the API server are those of the provider. Its words may repeat what it was sent: nothing of a Secret leaves the driver. */
  async #run<T>({ secretData }: Pick<MachineRequest, 'secretData'>, work: () => Promise<T>): Promise<T> {
    return await reportingFailures(secretData, driverFailure, work);
  }
}

function virtualMachineOf({ namespace }: SecretCluster, name: string): VirtualMachine {
  return {
    providerID: ironCoreProviderID(namespace, name),
    nodeName: name,
    addresses: [{ type: 'Hostname', address: name }],
  };
}

/** The volume of a CSI driver behind a PersistentVolume's spec; undefined for one of another kind. */
export function csiVolumeIDOf(spec: unknown, csiDriverName: string): string | undefined {
  const { driver, volumeHandle } = membersOf(membersOf(spec)['csi']);
  return driver === csiDriverName && typeof volumeHandle === 'string' && volumeHandle !== '' ? volumeHandle : undefined;
}
