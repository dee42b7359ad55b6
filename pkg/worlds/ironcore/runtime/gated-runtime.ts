import { CONTROL, GateClosedError, type Gate } from '../../../kube/gate/gate.ts';
import type { Interceptor } from '../../../kube/gate/interceptor.ts';
import type { Event } from './gen/ironcore/event/v1alpha1/event.ts';
import type {
  IronCoreRuntime,
  RuntimeCall,
  RuntimeClass,
  RuntimeFilter,
  RuntimeMachine,
  RuntimeVersion,
  DesiredRuntimeMachine,
} from './runtime.ts';
import type { DeepPartial, NetworkInterface, Power, Volume } from './gen/ironcore/machine/v1alpha1/machine.ts';

/** Longest that a look waits for its answer. */
const READ_TIMEOUT_MS = 10_000;
/** Longest that `classes` waits: it is the pool's sign of life. */
const PROBE_TIMEOUT_MS = 5_000;
/** Longest that a change waits for its answer. Ends sooner where leadership may pass on sooner. */
const MUTATION_TIMEOUT_MS = 30_000;

/**
 * What controllers see of a runtime. Everything throws RuntimeError; what changes something takes `of`, the object that it is done for
 * (`namespace/name`), and throws GateClosedError before anything is sent.
 */
export interface PoolRuntime {
  /** Where it is, as `--ironcore-pool` has it; without files of TLS. */
  readonly address: string;
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  classes(signal: AbortSignal): Promise<readonly RuntimeClass[]>;
  /** See IronCoreRuntime, as for all the others. */
  machines(filter: RuntimeFilter, signal: AbortSignal): Promise<readonly RuntimeMachine[]>;
  events(sinceMs: number, signal: AbortSignal): Promise<readonly Event[]>;
  create(of: string, machine: DesiredRuntimeMachine, signal: AbortSignal): Promise<string>;
  delete(of: string, id: string, signal: AbortSignal): Promise<void>;
  annotate(of: string, id: string, all: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>;
  setPower(of: string, id: string, power: Power, signal: AbortSignal): Promise<void>;
  attachVolume(of: string, id: string, volume: DeepPartial<Volume>, signal: AbortSignal): Promise<void>;
  updateVolume(of: string, id: string, volume: DeepPartial<Volume>, signal: AbortSignal): Promise<void>;
  detachVolume(of: string, id: string, name: string, signal: AbortSignal): Promise<void>;
  attachNetworkInterface(
    of: string,
    id: string,
    nic: DeepPartial<NetworkInterface>,
    signal: AbortSignal,
  ): Promise<void>;
  detachNetworkInterface(of: string, id: string, name: string, signal: AbortSignal): Promise<void>;
}

export interface GatedRuntimeDeps {
  readonly address: string;
  readonly runtime: IronCoreRuntime;
  readonly gate: Gate;
  readonly interceptor?: Interceptor | undefined;
}

/**
 * A runtime behind the gate: changes ask it first, as `destroy`. IRI carries no fencing token, so that the deadline of a change is the time
 * for which the fence is open by what is known then: a runtime gives up before anybody else can lead.
 */
export class GatedRuntime implements PoolRuntime {
  readonly address: string;
  readonly #runtime: IronCoreRuntime;
  readonly #gate: Gate;
  readonly #interceptor: Interceptor;

  constructor({ address, runtime, gate, interceptor }: GatedRuntimeDeps) {
    this.address = address;
    this.#runtime = runtime;
    this.#gate = gate;
    this.#interceptor = interceptor ?? ((_mutation, send) => send());
  }

  version(signal: AbortSignal): Promise<RuntimeVersion> {
    return this.#runtime.version({ signal, timeoutMs: READ_TIMEOUT_MS });
  }

  classes(signal: AbortSignal): Promise<readonly RuntimeClass[]> {
    return this.#runtime.classes({ signal, timeoutMs: PROBE_TIMEOUT_MS });
  }

  machines(filter: RuntimeFilter, signal: AbortSignal): Promise<readonly RuntimeMachine[]> {
    return this.#runtime.machines(filter, { signal, timeoutMs: READ_TIMEOUT_MS });
  }

  events(sinceMs: number, signal: AbortSignal): Promise<readonly Event[]> {
    return this.#runtime.events(sinceMs, { signal, timeoutMs: READ_TIMEOUT_MS });
  }

  create(of: string, machine: DesiredRuntimeMachine, signal: AbortSignal): Promise<string> {
    return this.#mutate('CreateMachine', of, signal, (call) => this.#runtime.createMachine(machine, call));
  }

  delete(of: string, id: string, signal: AbortSignal): Promise<void> {
    return this.#mutate('DeleteMachine', of, signal, (call) => this.#runtime.deleteMachine(id, call));
  }

  annotate(of: string, id: string, all: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    return this.#mutate('UpdateMachineAnnotations', of, signal, (call) =>
      this.#runtime.updateMachineAnnotations(id, all, call),
    );
  }

  setPower(of: string, id: string, power: Power, signal: AbortSignal): Promise<void> {
    return this.#mutate('UpdateMachinePower', of, signal, (call) => this.#runtime.updateMachinePower(id, power, call));
  }

  attachVolume(of: string, id: string, volume: DeepPartial<Volume>, signal: AbortSignal): Promise<void> {
    return this.#mutate('AttachVolume', of, signal, (call) => this.#runtime.attachVolume(id, volume, call));
  }

  updateVolume(of: string, id: string, volume: DeepPartial<Volume>, signal: AbortSignal): Promise<void> {
    return this.#mutate('UpdateVolume', of, signal, (call) => this.#runtime.updateVolume(id, volume, call));
  }

  detachVolume(of: string, id: string, name: string, signal: AbortSignal): Promise<void> {
    return this.#mutate('DetachVolume', of, signal, (call) => this.#runtime.detachVolume(id, name, call));
  }

  attachNetworkInterface(
    of: string,
    id: string,
    nic: DeepPartial<NetworkInterface>,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#mutate('AttachNetworkInterface', of, signal, (call) =>
      this.#runtime.attachNetworkInterface(id, nic, call),
    );
  }

  detachNetworkInterface(of: string, id: string, name: string, signal: AbortSignal): Promise<void> {
    return this.#mutate('DetachNetworkInterface', of, signal, (call) =>
      this.#runtime.detachNetworkInterface(id, name, call),
    );
  }

  async #mutate<T>(
    method: string,
    of: string,
    signal: AbortSignal,
    send: (call: RuntimeCall) => Promise<T>,
  ): Promise<T> {
    const text = `IRI ${method} ${of}`;
    const { remainingMs, leftMs = () => remainingMs } = await this.#gate.admit('destroy', [CONTROL], signal);
    return await this.#interceptor({ text }, async () => {
      // Right before it is sent: a process that was paused since has less time, or none.
      const timeoutMs = Math.min(MUTATION_TIMEOUT_MS, leftMs());
      if (timeoutMs <= 0) {
        throw new GateClosedError('fenced', undefined, `${text}: leadership may have been lost before it was sent`);
      }
      return await send({ signal, timeoutMs });
    });
  }
}
