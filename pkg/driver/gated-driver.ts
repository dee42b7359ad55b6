import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../base/clock/clock.ts';
import { DeadlineError, withDeadline } from '../base/clock/deadline.ts';
import type { Admission, Cluster, Gate } from '../kube/gate/gate.ts';
import type { DriverMetrics } from '../base/metrics/driver.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineOrStub,
  MachineRequest,
  VirtualMachine,
} from './driver.ts';
import type { CallRates } from './call-rates.ts';
import { DELETE_TIMEOUT_MS, READ_TIMEOUT_MS } from './deadlines.ts';
import { DRIVER_CODES, DriverError, type DriverCode } from './error.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import type { Obedience } from './obedience.ts';

/** What controllers see of a driver. All calls throw DriverError; mutations also GateClosedError, before anything is sent. */
export interface MachineDriver {
  /** Value of `provider` in metrics. */
  readonly provider: string;
  /**
   * Resolves when the account of the class may be called once more about a machine; throws TurnAbandonedError. Who creates, initializes or
   * deletes waits first, and looks then whether that is still wanted: a turn may take minutes. The looks of safety controllers are few,
   * and wait for none.
   */
  turn(machineClass: MachineClass, signal: AbortSignal): Promise<void>;
  capabilities(signal: AbortSignal): Promise<Capabilities>;
  getStatus(request: MachineRequest, signal: AbortSignal): Promise<VirtualMachine>;
  /** `timeoutMs`: longest to wait for the answer; see deadlines.ts. */
  create(request: MachineRequest, signal: AbortSignal, timeoutMs: number): Promise<CreatedMachine>;
  initialize(request: MachineRequest, signal: AbortSignal, timeoutMs: number): Promise<VirtualMachine>;
  /** Resolves with the driver's scratch state when nothing is left of the VM. Waits a minute at most: it may be repeated. */
  delete(request: MachineRequest, signal: AbortSignal): Promise<{ lastKnownState: string | undefined }>;
  list(request: Omit<MachineRequest, 'machine'>, signal: AbortSignal): Promise<readonly ListedMachine[]>;
  volumeIDs(pvSpecs: readonly unknown[], signal: AbortSignal): Promise<readonly string[]>;
}

export interface GatedDriverDeps {
  readonly provider: string;
  readonly driver: Driver;
  readonly gate: Gate;
  /** Undefined without leader election: there is no token that could be refused. */
  readonly obedience?: Obedience | undefined;
  /** The clusters that must be alive before the machine's VM is made or deleted; see concernedClusters. */
  readonly clustersOf: (machine: MachineOrStub) => readonly Cluster[];
  /** Identity of the control cluster at the provider. */
  readonly clusterID: string;
  readonly clock: Clock;
  readonly metrics: DriverMetrics;
  /** How often each account of the provider is called; undefined: as often as there is reason to. */
  readonly rates?: CallRates | undefined;
  readonly interceptor?: Interceptor;
  /** How long every mutation may take instead. For tests of drivers that hang. */
  readonly mutationTimeoutMs?: number;
}

/** Names of driver calls, as the label `operation` of the metrics spells them. */
const OPERATIONS = {
  create: 'create_machine',
  initialize: 'initialize_machine',
  delete: 'delete_machine',
  status: 'get_machine_status',
  list: 'list_machine',
  volumeIDs: 'get_volume_ids',
} as const;

type DriverOperation = keyof typeof OPERATIONS;

/** Calls for which a code is an answer like any other: that there is no VM, or that the provider goes on with it. */
const ANSWERS: Readonly<Partial<Record<DriverCode, ReadonlySet<DriverOperation>>>> = {
  NotFound: new Set(['status', 'delete']),
  Uninitialized: new Set(['status', 'create', 'initialize']),
};

/**
 * A driver behind the gate: mutations ask it first, as `destroy`, carry its fencing token, and are abandoned when the fence
 * closes. One that is refused for its token is repeated once if that can be put right. Every call has a deadline, also with
 * a driver that does not heed its signal.
 */
export function gatedDriver(deps: GatedDriverDeps): MachineDriver {
  const { provider, driver, rates } = deps;
  return {
    provider,
    turn: async (machineClass, signal) => await rates?.acquire(machineClass, signal),
    capabilities: (signal) => driver.capabilities(signal),
    getStatus: (request, signal) => read(deps, 'status', signal, (call) => driver.getMachineStatus(request, call)),
    create: (request, signal, timeoutMs) =>
      mutate(deps, 'create', request, signal, timeoutMs, (call) => driver.createMachine(request, call)),
    initialize: (request, signal, timeoutMs) =>
      mutate(deps, 'initialize', request, signal, timeoutMs, (call) => driver.initializeMachine(request, call)),
    delete: (request, signal) =>
      mutate(deps, 'delete', request, signal, DELETE_TIMEOUT_MS, (call) => driver.deleteMachine(request, call)),
    list: (request, signal) => read(deps, 'list', signal, (call) => driver.listMachines(request, call)),
    volumeIDs: (pvSpecs, signal) => read(deps, 'volumeIDs', signal, (call) => driver.getVolumeIDs(pvSpecs, call)),
  };
}

async function read<T>(
  deps: GatedDriverDeps,
  operation: DriverOperation,
  signal: AbortSignal,
  send: (call: DriverCall) => Promise<T>,
): Promise<T> {
  const call = { timeoutMs: READ_TIMEOUT_MS, fencingToken: 0n, cluster: deps.clusterID };
  return await measure(deps, operation, () => bounded(deps, { operation, isMutation: false, signal }, call, send));
}

async function mutate<T>(
  deps: GatedDriverDeps,
  operation: DriverOperation,
  { machine }: MachineRequest,
  signal: AbortSignal,
  timeoutMs: number,
  send: (call: DriverCall) => Promise<T>,
): Promise<T> {
  const { gate, obedience } = deps;
  const clusters = deps.clustersOf(machine);
  const admit = (): Promise<Admission> => gate.admit('destroy', clusters, signal);
  const mutation = { operation, machine, clusters, signal, timeoutMs };
  try {
    return await mutateUnder(deps, await admit(), mutation, send);
  } catch (err) {
    if (obedience === undefined || !(err instanceof DriverError) || err.highestToken === undefined) throw err;
    // Many calls are refused at once: by now another one may have seen to it.
    const { fencingToken } = await admit();
    if (fencingToken < err.highestToken) await obedience.restore(err, err.highestToken);
    return await mutateUnder(deps, await admit(), mutation, send);
  }
}

async function mutateUnder<T>(
  deps: GatedDriverDeps,
  admission: Admission,
  { operation, machine, clusters, signal, timeoutMs }: Mutation,
  send: (call: DriverCall) => Promise<T>,
): Promise<T> {
  const { gate, clock, clusterID: cluster, interceptor, mutationTimeoutMs, obedience } = deps;
  const call = {
    timeoutMs: mutationTimeoutMs ?? timeoutMs,
    fencingToken: admission.fencingToken,
    cluster,
  };
  return await measure(deps, operation, async () => {
    using fence = new FenceWatch({ gate, clusters, clock }, admission);
    const bounds = { operation, isMutation: true, signal, fenced: fence.signal };
    const sendOnce = (): Promise<T> => bounded(deps, bounds, call, send);
    const text = `DRIVER ${OPERATIONS[operation]} ${machine.metadata.namespace ?? ''}/${machine.metadata.name}`;
    const result = await (interceptor === undefined ? sendOnce() : interceptor({ text }, sendOnce));
    obedience?.obeyed();
    return result;
  });
}

/** One call that settles at the latest when it is given up, fenced off, or its time is over. */
async function bounded<T>(
  deps: GatedDriverDeps,
  bounds: Bounds,
  call: Omit<DriverCall, 'signal'>,
  send: (call: DriverCall) => Promise<T>,
): Promise<T> {
  const { signal, fenced } = bounds;
  if (signal.aborted) throw new DriverError('Canceled', 'cancelled before it was sent', { cause: signal.reason });
  const parent = fenced === undefined ? signal : AbortSignal.any([signal, fenced]);
  const what = OPERATIONS[bounds.operation];
  try {
    return await withDeadline(deps.clock, call.timeoutMs, what, (s) => send({ ...call, signal: s }), parent);
  } catch (err) {
    throw endOf(err, bounds);
  }
}

async function measure<T>(deps: GatedDriverDeps, operation: DriverOperation, run: () => Promise<T>): Promise<T> {
  const { clock, metrics } = deps;
  const labels = { provider: deps.provider, operation: OPERATIONS[operation] };
  const startedMs = clock.monotonicMs();
  metrics.running.inc(labels);
  try {
    const result = await run();
    metrics.duration.observe(labels, (clock.monotonicMs() - startedMs) / 1000);
    return result;
  } catch (err) {
    const code = err instanceof DriverError ? err.code : 'Internal';
    // That there is no VM is what a creation hopes to hear, and a deletion.
    if (ANSWERS[code]?.has(operation) === true) {
      metrics.duration.observe(labels, (clock.monotonicMs() - startedMs) / 1000);
      throw err;
    }
    metrics.failures.inc({ ...labels, error_code: String(DRIVER_CODES.indexOf(code)) });
    throw err;
  } finally {
    metrics.running.dec(labels);
  }
}

/** A mutation that is asked for, whatever becomes of its first attempt. */
interface Mutation {
  readonly operation: DriverOperation;
  readonly machine: MachineOrStub;
  readonly clusters: readonly Cluster[];
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

interface Bounds {
  readonly operation: DriverOperation;
  readonly isMutation: boolean;
  readonly signal: AbortSignal;
  readonly fenced?: AbortSignal;
}

/** Why a call ended. What the driver has answered itself is kept, even if it came with the abort. */
function endOf(err: unknown, { operation, isMutation, signal, fenced }: Bounds): unknown {
  if (err instanceof DriverError && !err.unanswered && err.code !== 'Canceled') return err;
  const options = { unanswered: isMutation, cause: err };
  const what = OPERATIONS[operation];
  if (signal.aborted) return new DriverError('Canceled', `${what} was aborted`, options);
  // As above it is we who end it: no failure of the provider.
  if (fenced?.aborted === true) return new DriverError('Canceled', `the fence closed during ${what}`, options);
  if (err instanceof DeadlineError) return new DriverError('Unavailable', err.message, { ...options, timedOut: true });
  return err;
}

/** One for all: an abort without a reason makes an Error with a stack, for each mutation of a driver. */
const OVER = new Error('the call has ended');

/**
 * Watches the fence for the length of one driver mutation. Making a VM takes minutes and the fence is only open for seconds
 * at a time, so the call does not end with the admission it began with: when that runs out the gate is asked again, as
 * `report`, which only the fence can refuse. `signal` is aborted, with what the gate threw, when it does.
 */
class FenceWatch implements Disposable {
  readonly #gate: Gate;
  readonly #clusters: readonly Cluster[];
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #cancelTimer: (() => void) | undefined;

  constructor(parts: { gate: Gate; clusters: readonly Cluster[]; clock: Clock }, admission: Admission) {
    this.#gate = parts.gate;
    this.#clusters = parts.clusters;
    this.#clock = parts.clock;
    this.#wait(admission);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  [Symbol.dispose](): void {
    this.#over.abort(OVER);
    this.#cancelTimer?.();
  }

  #wait({ remainingMs }: Admission): void {
    if (remainingMs === Infinity || this.#over.signal.aborted) return;
    this.#cancelTimer = this.#clock.schedule(remainingMs, () => void this.#query());
  }

  async #query(): Promise<void> {
    try {
      this.#wait(await this.#gate.admit('report', this.#clusters, this.#over.signal));
    } catch (err) {
      this.#stop.abort(err);
    }
  }
}
