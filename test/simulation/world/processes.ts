import { fixedEndpoint } from '../../../hack/control-plane/fixed-endpoint.ts';
import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { parseDuration } from '../../../pkg/apis/duration.ts';
import type { Driver, DriverCall, MachineRequest } from '../../../pkg/driver/driver.ts';
import type { Simulation } from '../../../packages/providers/sim/simulation.ts';
import type { ServedWorld } from '../../../pkg/controllers/world.ts';
import type { Endpoint } from '../../../pkg/kube/client/endpoint.ts';
import { hexOf } from '../../../pkg/base/random/random.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import type { APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { type RequestFault, SimulatedConnection } from './network.ts';
import type { DriverProcess } from './driver-process.ts';
import type { Past } from './past.ts';
import { seededRandom } from './seeded-random.ts';
import { type Flags, SimulatedProcess } from './simulated-process.ts';
import { targetAt } from './target-address.ts';
import type { Trace } from './trace.ts';
import { VirtualClock, type VirtualTime } from './virtual-clock.ts';
import type { Weather } from './network.ts';

/** The clusters of a world by name; the second may be the first. */
export type ClusterName = 'control' | 'target';
export type Servers = Readonly<Record<ClusterName, SimulatedAPIServer>>;

/** What is at an address. */
export interface Reached {
  readonly server: SimulatedAPIServer;
  readonly past: Past;
  readonly weather: Weather;
}

/** A change that a process has asked for, of which it is not sure that it was done; reports are none. */
export interface ProcessRequest {
  readonly identity: string;
  /** The host of a server, or a provider. */
  readonly to: string;
  readonly method: string;
  readonly path: string;
  readonly sentAtMs: number;
  /** What it says; undefined of calls of drivers. */
  readonly body?: unknown;
  /** The object that it changes, as it is stored when it arrives. */
  readonly before?: StoredObject | undefined;
}

/**
 * What happens to the leading process at one of its requests from now on: any, or one for a change, of a server or of the driver. Where many
 * namespaces are managed, several lead, and it happens to the one that asks.
 */
export interface Blow<T> {
  after: number;
  readonly countsChanges: boolean;
  readonly how: T;
}

/** A process, as those see it that it calls. */
export interface Caller {
  readonly name: string;
  readonly identity: string;
  readonly clock: VirtualClock;
  /** Is told of a call, and whether it is for a change; false: the process dies before it is sent. */
  asked(method: string, of: string, isOfChange: boolean): boolean;
}

/** A cloud, and the process of its driver. */
export interface DriverParts {
  readonly simulation: Simulation;
  readonly driverProcess: DriverProcess;
}

/** What processes run in. */
export interface ProcessesParts {
  readonly seed: number;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly flags: Flags;
  /** How many there are side by side. */
  readonly replicas: number;
  /** What is at the host of an address. */
  readonly reach: (host: string) => Reached;
  /** The cloud that they call by the driver of a provider. */
  readonly cloud: (provider: string) => DriverParts;
  /** What the cloud takes in place of the provider spec of a class. */
  readonly simulatedSpec: (providerSpec: unknown) => unknown;
  readonly leases: () => readonly Lease[];
  /** The way of a process to the runtime of a pool of IronCore. */
  readonly worlds: ((caller: Caller) => readonly ServedWorld[]) | undefined;
}

/** The processes of the program in a world, what they ask for, and what happens to them. */
export class Processes {
  /** The leading process dies at one of its requests: before the server has it, or before its answer arrives. */
  death: Blow<'before' | 'after'> | undefined;
  /** The same, when it stands still for so many milliseconds; see `needsStandby`. */
  pause: Blow<number> | undefined;
  /** The same, of something else. */
  turn: Blow<(process: SimulatedProcess) => void> | undefined;
  /** In place of the driver of the cloud, of calls with some classes; undefined: that of the cloud. */
  driverOf: ((machineClass: MachineClass) => Driver | undefined) | undefined;
  /** A process stands still, and no other one waits to take its place. */
  needsStandby = false;
  /** How often a process wrote what is no Event and no Lease. */
  writes = 0;
  requests = 0;
  /** The most that all processes sent within one second. */
  mostInASecond = 0;
  /** How many are to be there side by side. */
  replicas: number;
  readonly #parts: ProcessesParts;
  #second = { number: 0, requests: 0 };
  #all: SimulatedProcess[] = [];
  #starts = 0;
  readonly #listeners: ((request: ProcessRequest) => void)[] = [];

  constructor(parts: ProcessesParts) {
    this.#parts = parts;
    this.replicas = parts.replicas;
  }

  /** The process that leads, or else the newest, which may have ended. */
  get leader(): SimulatedProcess {
    return this.leaderBy(undefined);
  }

  /** The same of one Lease; undefined: of any. */
  leaderBy(lease: string | undefined): SimulatedProcess {
    const leases = this.#parts.leases().filter(({ metadata }) => lease === undefined || metadata.name === lease);
    const holders = new Set(leases.map(({ spec }) => spec?.holderIdentity));
    const process = this.running.find(({ identity }) => holders.has(identity)) ?? this.#all.at(-1);
    if (process === undefined) throw new Error('no process was started yet');
    return process;
  }

  /** Processes that have not ended; they may stand still. */
  get running(): readonly SimulatedProcess[] {
    return this.#all.filter(({ clock, exitCode }) => !clock.isDead && exitCode === undefined);
  }

  /** Whether fewer run than are to be there. */
  get lacksOne(): boolean {
    return this.running.length < this.replicas;
  }

  /** Whether they lead by Leases, so that another one may be started beside the first. */
  get elects(): boolean {
    return this.#parts.flags['leader-elect'] === 'true';
  }

  /** After how much silence of a leader another one takes its place. */
  get leaseDurationMs(): number {
    const { 'leader-elect-lease-duration': duration } = this.#parts.flags;
    return parseDuration(typeof duration === 'string' ? duration : '15s') ?? 0;
  }

  /** Told of each change that a process asks for, of servers and of providers. */
  onRequest(listener: (request: ProcessRequest) => void): void {
    this.#listeners.push(listener);
  }

  #tell(request: ProcessRequest): void {
    for (const listener of this.#listeners) listener(request);
  }

  /** Starts a process; those before go on unless they were killed. */
  async start({
    version = 'simulation',
    flags: own = {},
  }: { readonly version?: string; readonly flags?: Flags } = {}): Promise<SimulatedProcess> {
    const { seed, time, trace, reach, flags, cloud, simulatedSpec, worlds } = this.#parts;
    this.#starts += 1;
    const clock = new VirtualClock(time);
    const name = `process ${this.#starts}`;
    const random = seededRandom(seed, name);
    const identity = `manager-${hexOf(random, 6)}`;
    const ask = (to: string, method: string, of: string, isOfChange: boolean): boolean => {
      if (isOfChange) this.#tell({ identity, to, method, path: of, sentAtMs: time.elapsedMs });
      return this.#strike(clock, `${method} ${of}`, isOfChange);
    };
    const caller: Caller = {
      name,
      identity,
      clock,
      asked: (method, of, isOfChange) => ask('', method, of, isOfChange),
    };
    const started = await SimulatedProcess.start({
      flags: { ...flags, ...own },
      clock,
      identity,
      version,
      random,
      openDriver: (provider) =>
        fenced(cloud(provider), simulatedSpec, {
          driverOf: (machineClass) => this.driverOf?.(machineClass),
          asked: (method, machine) => {
            trace.add(`${name} driver ${method} ${machine}`);
            return ask(provider, method, machine, true);
          },
        }),
      worlds: worlds?.(caller) ?? WORLDS,
      openEndpoint: endpointOf,
      told: (text) => trace.add(`${name} log ${text}`),
      openDispatcher: (address) => {
        const to = new URL(address).hostname;
        const reached = reach(to);
        // Of the request that arrives, until its answer is known, which is before anything else happens.
        let before: StoredObject | undefined;
        return new SimulatedConnection({
          time,
          clock,
          ...reached,
          observer: {
            asked: (request) => {
              this.requests += 1;
              before = isChange(request) ? storedAt(reached.server, request) : undefined;
              this.#countInSecond();
              return this.#strike(clock, `${request.method} ${request.path}`, isChange(request));
            },
            answered: (request, code, fate, sentAtMs) =>
              this.#answered({ name, identity, to }, request, { code, fate, sentAtMs, before }),
          },
        });
      },
    });
    this.#all = [...this.running, started];
    trace.add(`${name} started`);
    return started;
  }

  /** All of them die, without any last word. */
  kill(): void {
    for (const process of this.running) process.kill();
  }

  /** Lets what is in store for the leader happen at a request of a process; false: it died before. */
  #strike(clock: VirtualClock, what: string, isOfChange: boolean): boolean {
    if (this.death === undefined && this.pause === undefined && this.turn === undefined) return true;
    const struck = hasCells(this.#parts.flags) ? this.running.find((process) => process.clock === clock) : this.leader;
    if (struck === undefined || clock !== struck.clock) return true;
    const isDue = (blow: Blow<unknown> | undefined): boolean =>
      blow !== undefined && (isOfChange || !blow.countsChanges) && (blow.after -= 1) <= 0;
    if (isDue(this.turn)) {
      const { how } = this.turn!;
      this.turn = undefined;
      this.#parts.trace.add(`a turn at ${what}`);
      how(struck);
    }
    if (isDue(this.pause)) this.#standStill(clock, this.pause!.how, what);
    if (!isDue(this.death)) return true;
    const { how } = this.death!;
    this.death = undefined;
    this.#parts.trace.add(`death ${how} ${what}`);
    this.#parts.trace.add(`process ${struck.identity} died`);
    struck.kill();
    return how === 'after';
  }

  #standStill(clock: VirtualClock, forMs: number, what: string): void {
    this.pause = undefined;
    this.#parts.trace.add(`the process stands still for ${Math.round(forMs)} ms after ${what}`);
    clock.pause();
    this.#parts.time.schedule(forMs, () => clock.resume());
    this.needsStandby = this.elects && !this.running.some((process) => !process.clock.isPaused);
  }

  #countInSecond(): void {
    const number = Math.floor(this.#parts.time.elapsedMs / 1_000);
    if (this.#second.number !== number) this.#second = { number, requests: 0 };
    this.#second.requests += 1;
    this.mostInASecond = Math.max(this.mostInASecond, this.#second.requests);
  }

  #answered(
    { name, identity, to }: { readonly name: string; readonly identity: string; readonly to: string },
    { method, path, body, cachedAt }: APIRequest,
    { code, fate, sentAtMs, before }: Answered,
  ): void {
    if (isChange({ method, path })) {
      if (code >= 200 && code < 300) this.writes += 1;
      this.#tell({ identity, to, method, path, sentAtMs, body, before });
    }
    const sent = body === undefined ? '' : ` ${JSON.stringify(body)}`;
    const where = targetAt(to) === undefined ? '' : `//${to}`;
    const age = cachedAt === undefined ? '' : ` as of ${cachedAt}`;
    this.#parts.trace.add(`${name} ${method} ${where}${path}${sent} ${code} ${fate}${age}`);
  }
}

/** What became of a request. */
interface Answered {
  readonly code: number;
  readonly fate: RequestFault;
  readonly sentAtMs: number;
  readonly before: StoredObject | undefined;
}

/** The object that a request names; undefined where it makes one, and of one that is not there. */
function storedAt(server: SimulatedAPIServer, { method, path }: APIRequest): StoredObject | undefined {
  if (method === 'POST') return undefined;
  const [of = ''] = path.split('?', 1);
  const answer = server.handle({ method: 'GET', path: of.replace(/\/(status|scale)$/, '') });
  return 'body' in answer && answer.code === 200 ? (answer.body as StoredObject) : undefined;
}

/** Whether processes with these flags manage many namespaces. */
export function hasCells(flags: Flags): boolean {
  return flags['cells'] !== undefined || flags['cell-namespaces'] !== undefined;
}

/** The way to a cluster, whose name is in place of the path of a kubeconfig. */
export const endpointOf = (cluster: string): Endpoint => fixedEndpoint(`http://${cluster}`, {});

/** Events, Leases and questions for permissions are none. */
function isChange({ method, path }: Pick<APIRequest, 'method' | 'path'>): boolean {
  return method !== 'GET' && !/\/(events|leases|selfsubject[a-z]+reviews)(\/|$|\?)/.test(path);
}

/** The driver behind the guard that those of other processes have. `asked` is told of calls that change something. */
function fenced(
  { simulation: { driver: own, fencing }, driverProcess }: DriverParts,
  simulatedSpec: ProcessesParts['simulatedSpec'],
  {
    driverOf,
    asked,
  }: {
    readonly driverOf: (machineClass: MachineClass) => Driver | undefined;
    readonly asked: (method: string, machine: string) => boolean;
  },
): Driver {
  const admit = (
    method: string,
    { machine: { metadata } }: MachineRequest,
    { cluster, fencingToken }: DriverCall,
  ): Promise<void> => {
    // Who died before has asked for nothing.
    if (!asked(method, metadata.name)) return new Promise(() => undefined);
    return fencing.admit(cluster, metadata.namespace ?? '', fencingToken);
  };
  const driver = ({ machineClass }: Pick<MachineRequest, 'machineClass'>): Driver => driverOf(machineClass) ?? own;
  const change = async <T>(
    method: string,
    request: MachineRequest,
    call: DriverCall,
    send: (call: DriverCall) => Promise<T>,
  ): Promise<T> => {
    driverProcess.requireReachable();
    await admit(method, request, call);
    return driverProcess.call(method, true, call, send);
  };
  const read = async <T>(method: string, call: DriverCall, send: (call: DriverCall) => Promise<T>): Promise<T> => {
    driverProcess.requireReachable();
    return driverProcess.call(method, false, call, send);
  };
  return {
    capabilities: async (signal) => {
      driverProcess.requireReachable();
      return own.capabilities(signal);
    },
    createMachine: (request, given) =>
      change('CreateMachine', request, given, (call) => {
        const { machineClass } = request;
        const providerSpec = simulatedSpec(machineClass.providerSpec);
        return driver(request).createMachine({ ...request, machineClass: { ...machineClass, providerSpec } }, call);
      }),
    initializeMachine: (request, given) =>
      change('InitializeMachine', request, given, (call) => driver(request).initializeMachine(request, call)),
    getMachineStatus: (request, given) =>
      read('GetMachineStatus', given, (call) => driver(request).getMachineStatus(request, call)),
    deleteMachine: (request, given) =>
      change('DeleteMachine', request, given, (call) => driver(request).deleteMachine(request, call)),
    listMachines: (request, given) =>
      read('ListMachines', given, (call) => driver(request).listMachines(request, call)),
    getVolumeIDs: (specs, given) => read('GetVolumeIDs', given, (call) => own.getVolumeIDs(specs, call)),
    close: () => Promise.resolve(),
  };
}
