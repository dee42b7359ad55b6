import { CONTROL, GateClosedError, type Gate } from '../../../kube/gate/gate.ts';
import type { Interceptor } from '../../../kube/gate/interceptor.ts';
import type { Event } from './gen/ironcore/event/v1alpha1/event.ts';
import type {
  IronCoreRuntime,
  RuntimeCall,
  RuntimeChange,
  RuntimeClass,
  RuntimeFilter,
  RuntimeMachine,
  RuntimeVersion,
  DesiredRuntimeMachine,
} from './runtime.ts';

/** Longest that a look waits for its answer. */
const READ_TIMEOUT_MS = 10_000;
/** Longest that `classes` waits: it is the pool's sign of life. */
const PROBE_TIMEOUT_MS = 5_000;
/** Longest that a change waits for its answer. Ends sooner where leadership may pass on sooner. */
const MUTATION_TIMEOUT_MS = 30_000;

/** How IRI calls changes. */
const METHODS: Readonly<Record<RuntimeChange['kind'], string>> = {
  annotate: 'UpdateMachineAnnotations',
  power: 'UpdateMachinePower',
  attachVolume: 'AttachVolume',
  updateVolume: 'UpdateVolume',
  detachVolume: 'DetachVolume',
  attachNetworkInterface: 'AttachNetworkInterface',
  detachNetworkInterface: 'DetachNetworkInterface',
};

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
  change(of: string, id: string, change: RuntimeChange, signal: AbortSignal): Promise<void>;
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
export function gatedRuntime(deps: GatedRuntimeDeps): PoolRuntime {
  const { address, runtime } = deps;
  return {
    address,
    version: (signal) => runtime.version({ signal, timeoutMs: READ_TIMEOUT_MS }),
    classes: (signal) => runtime.classes({ signal, timeoutMs: PROBE_TIMEOUT_MS }),
    machines: (filter, signal) => runtime.machines(filter, { signal, timeoutMs: READ_TIMEOUT_MS }),
    events: (sinceMs, signal) => runtime.events(sinceMs, { signal, timeoutMs: READ_TIMEOUT_MS }),
    create: (of, machine, signal) =>
      mutate(deps, 'CreateMachine', of, signal, (call) => runtime.createMachine(machine, call)),
    delete: (of, id, signal) => mutate(deps, 'DeleteMachine', of, signal, (call) => runtime.deleteMachine(id, call)),
    change: (of, id, change, signal) =>
      mutate(deps, METHODS[change.kind], of, signal, (call) => sendChange(runtime, id, change, call)),
  };
}

async function mutate<T>(
  { gate, interceptor = (_mutation, send) => send() }: GatedRuntimeDeps,
  method: string,
  of: string,
  signal: AbortSignal,
  send: (call: RuntimeCall) => Promise<T>,
): Promise<T> {
  const text = `IRI ${method} ${of}`;
  const { remainingMs, leftMs = () => remainingMs } = await gate.admit('destroy', [CONTROL], signal);
  return await interceptor({ text }, async () => {
    // Right before it is sent: a process that was paused since has less time, or none.
    const timeoutMs = Math.min(MUTATION_TIMEOUT_MS, leftMs());
    if (timeoutMs <= 0) {
      throw new GateClosedError('fenced', undefined, `${text}: leadership may have been lost before it was sent`);
    }
    return await send({ signal, timeoutMs });
  });
}

async function sendChange(
  runtime: IronCoreRuntime,
  id: string,
  change: RuntimeChange,
  call: RuntimeCall,
): Promise<void> {
  switch (change.kind) {
    case 'annotate':
      return await runtime.updateMachineAnnotations(id, change.annotations, call);
    case 'power':
      return await runtime.updateMachinePower(id, change.power, call);
    case 'attachVolume':
    case 'updateVolume':
      return await runtime[change.kind](id, change.volume, call);
    case 'attachNetworkInterface':
      return await runtime.attachNetworkInterface(id, change.networkInterface, call);
    case 'detachVolume':
    case 'detachNetworkInterface':
      return await runtime[change.kind](id, change.name, call);
  }
}
